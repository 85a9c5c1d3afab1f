/** Whether a name matches a pattern, in which `*` stands for any characters. */
export function matchesPattern(name: string, pattern: string): boolean {
  const [first = '', ...parts] = pattern.split('*')
  const last = parts.pop()
  if (last === undefined) return name === pattern
  if (!name.startsWith(first) || !name.endsWith(last)) return false
  let at = first.length
  for (const part of parts) {
    const found = name.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at <= name.length - last.length
}
