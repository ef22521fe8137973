// The built package that a peer measures: this checkout's, or the one in the folder that BENCH_DIST names.
const folder = process.env.BENCH_DIST ?? new URL('../dist/', import.meta.url).href

export function importBuilt(entry) {
  return import(new URL(entry, folder).href)
}
