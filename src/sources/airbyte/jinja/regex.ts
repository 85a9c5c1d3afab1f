import { TemplateError } from './values.ts'

const SUBJECT_CHARS_MAX = 16_384
const PATTERN_CHARS_MAX = 512

/** Compiles a pattern of Python. Patterns whose time could grow exponentially with the text are refused. */
export function compilePattern(pattern: string): RegExp {
  if (pattern.length > PATTERN_CHARS_MAX) throw new TemplateError('a pattern is too long')
  if (hasNestedRepetition(pattern)) throw new TemplateError('a pattern repeats a repetition, which can take forever')
  const [, flags = '', body = ''] = /^(?:\(\?([imsux]+)\))?([\s\S]*)$/.exec(pattern) ?? []
  const translated = body
    .replace(/\(\?P<(\w+)>/g, '(?<$1>')
    .replace(/\(\?P=(\w+)\)/g, '\\k<$1>')
    .replace(/\\A/g, '^')
    .replace(/\\Z/g, '$')
  try {
    return new RegExp(translated, [...new Set(flags)].filter((flag) => 'ims'.includes(flag)).join(''))
  } catch {
    throw new TemplateError('a pattern is not a regular expression')
  }
}

export function checkSubject(text: string): string {
  if (text.length > SUBJECT_CHARS_MAX) throw new TemplateError('a text is too long for a pattern')
  return text
}

/** Whether a group that repeats is repeated itself: `(a+)+`. */
function hasNestedRepetition(pattern: string): boolean {
  const plain = pattern.replace(/\\[\s\S]/g, 'x').replace(/\[[^\]]*\]/g, 'x')
  const groups: boolean[] = []
  let repeats = false
  for (let at = 0; at < plain.length; at++) {
    const character = plain[at]
    if (character === '(') {
      groups.push(repeats)
      repeats = false
    } else if (character === ')') {
      const isRepeated = /^(?:[*+]|\{\d+,)/.test(plain.slice(at + 1, at + 6))
      if (repeats && isRepeated) return true
      repeats = (groups.pop() ?? false) || repeats || isRepeated
    } else if (character === '*' || character === '+' || (character === '{' && /^\{\d*,/.test(plain.slice(at, at + 5))))
      repeats = true
  }
  return false
}
