/** Names joined by dots, as in `acme.customers.name`. */
export interface QualifiedName {
  readonly parts: readonly NamePart[]
}

export interface NamePart {
  /** Folded to lower case unless it is quoted, as PostgreSQL does. */
  readonly name: string
  readonly start: number
}

const TOKEN = new RegExp(
  [
    String.raw`(?<skipped>--[^\n]*|\s+)`,
    String.raw`(?<comment>\/\*)`,
    String.raw`(?<escaped>[eE]'(?:[^'\\]|\\[\s\S]|'')*'?)`,
    String.raw`(?<text>'(?:[^']|'')*'?)`,
    String.raw`(?<dollar>\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)`,
    String.raw`(?<quoted>"(?:[^"]|"")*"?)`,
    String.raw`(?<plain>[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)`,
    String.raw`(?<number>\d[\w.]*)`,
  ].join('|'),
  'y',
)

/** Lists the names in a statement, outside of its texts and comments. */
export function parseQualifiedNames(sql: string): QualifiedName[] {
  const chains: NamePart[][] = []
  let chain: NamePart[] | null = null
  let isDotted = false
  for (let at = 0; at < sql.length;) {
    TOKEN.lastIndex = at
    const groups = TOKEN.exec(sql)?.groups
    const start = at
    at = groups === undefined ? at + 1 : tokenEnd(sql, TOKEN.lastIndex, groups)
    if (groups?.['skipped'] !== undefined || groups?.['comment'] !== undefined) continue
    const name = groups?.['plain']?.toLowerCase() ?? groups?.['quoted']?.replace(/^"|"$/g, '').replaceAll('""', '"')
    if (name === undefined) {
      isDotted = chain !== null && sql[start] === '.'
      if (!isDotted) chain = null
      continue
    }
    if (chain === null || !isDotted) chains.push((chain = []))
    chain.push({ name, start })
    isDotted = false
  }
  return chains.map((parts) => ({ parts }))
}

/** Comments nest, and a dollar-quoted text ends with the same tag. */
function tokenEnd(sql: string, end: number, { comment, dollar }: Record<string, string | undefined>): number {
  if (dollar !== undefined) {
    const close = sql.indexOf(dollar, end)
    return close === -1 ? sql.length : close + dollar.length
  }
  if (comment === undefined) return end
  let depth = 1
  for (let at = end; at < sql.length; at++) {
    const two = sql.slice(at, at + 2)
    if (two !== '/*' && two !== '*/') continue
    depth += two === '/*' ? 1 : -1
    at++
    if (depth === 0) return at + 1
  }
  return sql.length
}
