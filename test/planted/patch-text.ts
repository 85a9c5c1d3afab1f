/** Where code occurs in the text of a file, and the names that differ there. */
export interface CodeMatch {
  readonly start: number
  readonly end: number
  /** Names of the code that the file calls otherwise. */
  readonly renames: ReadonlyMap<string, string>
}

/** Replaces code in a file's text. The code must occur exactly once; see `findCode`. */
export function patchText(source: string, code: string, replacement: string): string {
  const matches = findCode(source, code)
  const [match] = matches
  if (match === undefined || matches.length > 1) {
    throw new Error(`The code to replace must occur once; it occurs ${matches.length} times: ${code}`)
  }
  return source.slice(0, match.start) + renameIn(replacement, match.renames) + source.slice(match.end)
}

/**
 * Where the code occurs in the text of a file: the same tokens, whatever the line breaks, indentation, comments and
 * trailing commas. If it occurs nowhere, up to two names may differ, so that a patch still applies after a rename.
 */
export function findCode(source: string, code: string): readonly CodeMatch[] {
  // Also code that begins or ends within a text, which is no token.
  for (const pattern of [escape(code), patternFor(code)]) {
    const found = [...source.matchAll(new RegExp(pattern, 'g'))]
    if (found.length > 0)
      return found.map((match) => ({ start: match.index, end: match.index + match[0].length, renames: new Map() }))
  }
  const wanted = tokenize(code)
  const found = tokenize(source)
  for (const renamesMax of [0, RENAMES_MAX]) {
    const matches = found.flatMap((_, at) => matchAt(found, at, wanted, renamesMax) ?? [])
    if (matches.length > 0) return matches
  }
  return []
}

const RENAMES_MAX = 2

/** Matches the code with other line breaks, indentation and trailing commas. */
function patternFor(code: string): string {
  const tokens = code.match(/[\w$#]+|[^\s]/g) ?? []
  let pattern = ''
  let previous = ''
  for (const token of tokens) {
    if (previous !== '') pattern += isWord(previous) && isWord(token) ? '\\s+' : isCloser(token) ? '\\s*,?\\s*' : '\\s*'
    pattern += escape(token)
    previous = token
  }
  return pattern
}

/** The replacement, with the names that the file has. */
export function renameIn(code: string, renames: ReadonlyMap<string, string>): string {
  let text = ''
  let end = 0
  for (const token of tokenize(code)) {
    text += code.slice(end, token.start) + (renames.get(token.text) ?? token.text)
    end = token.end
  }
  return text + code.slice(end)
}

interface Token {
  readonly text: string
  readonly start: number
  readonly end: number
}

function matchAt(
  found: readonly Token[],
  start: number,
  wanted: readonly Token[],
  renamesMax: number,
): CodeMatch | null {
  const renames = new Map<string, string>()
  const kept = new Set<string>()
  const first = found[start]
  let at = start
  for (const [index, { text }] of wanted.entries()) {
    if (found[at]?.text === ',' && text !== ',' && isCloser(text) && isCloser(found[at + 1]?.text)) at++
    const token = found[at]
    if (token === undefined) return null
    if (text === ',' && token.text !== ',' && isCloser(token.text) && isCloser(wanted[index + 1]?.text)) continue
    at++
    if (token.text === text && !renames.has(text)) {
      if (isName(text)) kept.add(text)
      continue
    }
    if (renames.get(text) === token.text) continue
    const isFree = !kept.has(text) && !renames.has(text) && renames.size < renamesMax
    if (!isFree || !isName(text) || !isName(token.text)) return null
    renames.set(text, token.text)
  }
  const last = found[at - 1]
  // Code that shares no name is not the same code with other names.
  if (first === undefined || last === undefined || (renames.size > 0 && kept.size === 0)) return null
  const others = [...renames.values()]
  if (new Set(others).size < others.length || others.some((name) => kept.has(name))) return null
  return { start: first.start, end: last.end, renames }
}

function tokenize(text: string): Token[] {
  const pattern = /\/\/[^\n]*|\/\*.*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|[#$\w]+|[^\s]/gs
  return [...text.matchAll(pattern)]
    .filter(([token]) => !token.startsWith('//') && !token.startsWith('/*'))
    .map((match) => ({ text: match[0], start: match.index, end: match.index + match[0].length }))
}

function isCloser(text: string | undefined): boolean {
  return text === ')' || text === ']' || text === '}'
}

function isWord(text: string): boolean {
  return /^[\w$#]/.test(text)
}

function isName(text: string): boolean {
  return /^[#$A-Z_a-z]/.test(text) && !KEYWORDS.has(text)
}

const KEYWORDS: ReadonlySet<string> = new Set(
  (
    'as async await break case catch class const continue default delete do else export extends false finally for ' +
    'function if import in instanceof interface let new null of readonly return static super switch this throw true ' +
    'try type typeof undefined void while yield'
  ).split(' '),
)

function escape(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}
