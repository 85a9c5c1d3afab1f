import type { JsonObject, JsonValue } from '../../../contract/index.ts'

const DEPTH_MAX = 200

/** XML as the framework reads it: attributes as `@name`, text as the value or `#text`, repeated elements as a list. */
export function parseXml(text: string): JsonValue {
  const root: Element = { name: '', members: {}, text: '' }
  const open: Element[] = [root]
  const pattern =
    /<!--[\s\S]*?-->|<!\[CDATA\[([\s\S]*?)\]\]>|<\?[\s\S]*?\?>|<!DOCTYPE[^>]*>|<\/([^\s>]+)\s*>|<([^\s/>]+)((?:\s+[^\s=>]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(\/?)>|([^<]+)/gy
  let at = 0
  for (;;) {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    if (found === null) break
    at = pattern.lastIndex
    const [, data, closed, opened, attributes = '', isEmpty, content] = found
    const current = open.at(-1) ?? root
    if (data !== undefined) current.text += data
    else if (content !== undefined) current.text += decodeEntities(content)
    else if (opened !== undefined) {
      const element: Element = { name: opened, members: readAttributes(attributes), text: '' }
      if (isEmpty === '/') addMember(current, element)
      else if (open.push(element) > DEPTH_MAX) throw new Error('the document is nested too deeply')
    } else if (closed !== undefined) {
      const element = open.pop()
      if (element?.name !== closed || open.length === 0) throw new Error('an element is not closed')
      addMember(open.at(-1) ?? root, element)
    }
  }
  if (at < text.length || open.length !== 1) throw new Error('the document is incomplete')
  return root.members
}

interface Element {
  readonly name: string
  readonly members: JsonObject
  text: string
}

function addMember(parent: Element, element: Element): void {
  const value = toValue(element)
  const known = Object.hasOwn(parent.members, element.name) ? parent.members[element.name] : undefined
  if (known === undefined) parent.members[element.name] = value
  else if (Array.isArray(known)) known.push(value)
  else parent.members[element.name] = [known, value]
}

function toValue({ members, text }: Element): JsonValue {
  const trimmed = text.trim()
  if (Object.keys(members).length === 0) return trimmed === '' ? null : trimmed
  return trimmed === '' ? members : { ...members, '#text': trimmed }
}

function readAttributes(text: string): JsonObject {
  const pairs = text.matchAll(/([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)
  return Object.fromEntries([...pairs].map(([, name = '', a, b]) => [`@${name}`, decodeEntities(a ?? b ?? '')]))
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function decodeEntities(text: string): string {
  return text.replace(/&(?:#x([\da-f]+)|#(\d+)|(\w+));/gi, (whole, hex?: string, decimal?: string, name?: string) => {
    const code = hex === undefined ? Number(decimal ?? Number.NaN) : Number.parseInt(hex, 16)
    if (Number.isInteger(code) && code <= 0x10ffff) return String.fromCodePoint(code)
    return ENTITIES[name ?? ''] ?? whole
  })
}
