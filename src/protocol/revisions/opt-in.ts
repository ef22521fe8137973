// The revisions that are spoken only where both sides name them: drafts of rounds, from before there was a release of them.
export const OPT_IN = ['2026-06-XX', '2026-02-03-draft'] as const

export type OptInRevision = (typeof OPT_IN)[number]
