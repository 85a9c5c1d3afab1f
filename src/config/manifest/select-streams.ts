export interface StreamSelection {
  readonly include?: readonly string[]
  readonly exclude?: readonly string[]
  readonly limit?: number
}

/** Selects the ids. Exclusions override inclusions. */
export function selectStreams(
  ids: readonly string[],
  { include = ['*'], exclude = [], limit = Number.POSITIVE_INFINITY }: StreamSelection = {},
): string[] {
  const included = include.map(globToRegExp)
  const excluded = exclude.map(globToRegExp)
  return ids
    .filter((id) => included.some((glob) => glob.test(id)) && !excluded.some((glob) => glob.test(id)))
    .slice(0, limit)
}

/** `*` matches any text, `?` one character, `{a,b}` either; other characters match themselves. */
function globToRegExp(glob: string): RegExp {
  const source = glob.replaceAll(/\{([^{}]*)\}|\*+|\?|[^{*?]|\{/g, (part, options: string | undefined) => {
    if (options !== undefined)
      return `(?:${options
        .split(',')
        .map((option) => globToRegExp(option).source.slice(1, -1))
        .join('|')})`
    if (part.startsWith('*')) return '.*'
    return part === '?' ? '.' : part.replaceAll(/[\\^$.|+()[\]{}]/g, '\\$&')
  })
  return new RegExp(`^${source}$`)
}
