/**
 * Replaces code in a file's text. The code must occur exactly once. Line breaks, indentation and trailing commas do not
 * count, so that a patch still applies after the formatter has wrapped its lines.
 */
export function patchText(source: string, code: string, replacement: string): string {
  const matches = findCode(source, code)
  const [match] = matches
  if (match === undefined || matches.length > 1) {
    throw new Error(`The code to replace must occur once; it occurs ${matches.length} times: ${code}`)
  }
  return source.slice(0, match.start) + replacement + source.slice(match.end)
}

/** Where the code occurs in the text of a file. */
export function findCode(source: string, code: string): ReadonlyArray<{ start: number; end: number }> {
  const exact = [...source.matchAll(new RegExp(escape(code), 'g'))]
  const matches = exact.length > 0 ? exact : [...source.matchAll(new RegExp(patternFor(code), 'g'))]
  return matches.map((match) => ({ start: match.index, end: match.index + match[0].length }))
}

function patternFor(code: string): string {
  const tokens = code.match(/\s+|[\w$#]+|./gs) ?? []
  let pattern = ''
  let previous = ''
  for (const token of tokens) {
    if (/^\s/.test(token)) continue
    if (previous !== '')
      pattern += isWord(previous) && isWord(token) ? '\\s+' : /[)\]}]/.test(token) ? '\\s*,?\\s*' : '\\s*'
    pattern += escape(token)
    previous = token
  }
  return pattern
}

function isWord(token: string): boolean {
  return /^[\w$#]/.test(token)
}

function escape(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}
