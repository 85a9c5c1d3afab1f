import type { JsonObject, JsonValue } from '../../../contract/index.ts'

const DEPTH_MAX = 200

/** XML as the framework reads it: attributes as `@name`, text as the value or `#text`, repeated elements as a list. */
export function parseXml(text: string): JsonValue {
  const root: Element = { name: '', members: {}, text: '' }
  const open: Element[] = [root]
  for (let at = 0; at < text.length;) {
    const current = open.at(-1) ?? root
    const start = text.indexOf('<', at)
    current.text += decodeEntities(text.slice(at, start < 0 ? text.length : start))
    if (start < 0) break
    const section = SECTIONS.find(({ open: mark }) => text.startsWith(mark, start))
    if (section !== undefined) {
      const from = start + section.open.length
      const end = findEnd(text, section.close, from)
      if (section.isText) current.text += text.slice(from, end)
      at = end + section.close.length
      continue
    }
    const end = findTagEnd(text, start + 1)
    readTag(text.slice(start + 1, end), open)
    at = end + 1
  }
  if (open.length !== 1) throw new Error('the document is incomplete')
  return root.members
}

const SECTIONS = [
  { open: '<!--', close: '-->', isText: false },
  { open: '<![CDATA[', close: ']]>', isText: true },
  { open: '<?', close: '?>', isText: false },
  { open: '<!', close: '>', isText: false },
]

interface Element {
  readonly name: string
  readonly members: JsonObject
  text: string
}

function findEnd(text: string, mark: string, from: number): number {
  const end = text.indexOf(mark, from)
  if (end < 0) throw new Error('the document is incomplete')
  return end
}

/** A quoted value may contain the end of a tag. */
function findTagEnd(text: string, from: number): number {
  let quote = ''
  for (let at = from; at < text.length; at++) {
    const character = text[at] ?? ''
    if (quote !== '') quote = character === quote ? '' : quote
    else if (character === '"' || character === "'") quote = character
    else if (character === '>') return at
  }
  throw new Error('the document is incomplete')
}

function readTag(tag: string, open: Element[]): void {
  if (tag.startsWith('/')) {
    const element = open.pop()
    if (element?.name !== tag.slice(1).trim() || open.length === 0) throw new Error('an element is not closed')
    return addMember(open.at(-1), element)
  }
  const isEmpty = tag.endsWith('/')
  const content = isEmpty ? tag.slice(0, -1) : tag
  const name = /^[^\s/"'=]+/.exec(content)?.[0]
  if (name === undefined) throw new Error('an element has no name')
  const element: Element = { name, members: readAttributes(content.slice(name.length)), text: '' }
  if (isEmpty) addMember(open.at(-1), element)
  else if (open.push(element) > DEPTH_MAX) throw new Error('the document is nested too deeply')
}

function addMember(parent: Element | undefined, element: Element): void {
  if (parent === undefined) return
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
  const pairs = text.matchAll(/([^\s=]+)=(?:"([^"]*)"|'([^']*)')/g)
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
