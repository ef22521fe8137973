/** The text of a page: the build puts it, minified, into the package. */
declare module '*.html?raw' {
  const text: string
  export default text
}
