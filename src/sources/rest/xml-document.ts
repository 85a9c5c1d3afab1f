import { SyncError, type JsonObject, type JsonValue } from '../../contract/index.ts'

/**
 * Reads an XML document as JSON: an element is an object of its children, an attribute a member with `@`, the text of an
 * element with attributes or children the member `#text`. An element without either is its text; repeated elements are a
 * list. Names keep their prefix. A document type is refused: it can refer to files or expand without end.
 */
export function parseXml(xml: string): JsonValue {
  const root: Element = { name: '', members: {}, text: '' }
  const open: Element[] = [root]
  let at = xml.startsWith('\ufeff') ? 1 : 0
  while (at < xml.length) {
    const current = open.at(-1) ?? root
    const start = xml.indexOf('<', at)
    current.text += decodeEntities(xml.slice(at, start === -1 ? xml.length : start))
    if (start === -1) break
    const section = SECTIONS.find(({ begin }) => xml.startsWith(begin, start))
    if (section !== undefined) {
      const end = xml.indexOf(section.end, start + section.begin.length)
      if (end === -1) throw invalidXmlError()
      if (section.isText) current.text += xml.slice(start + section.begin.length, end)
      at = end + section.end.length
      continue
    }
    TAG.lastIndex = start
    const [tag, slash, name = '', attributes = '', empty] = TAG.exec(xml) ?? []
    if (tag === undefined) throw invalidXmlError()
    at = start + tag.length
    if (slash === '/') {
      if (open.length === 1 || current.name !== name) throw invalidXmlError()
      open.pop()
      addMember(open.at(-1) ?? root, name, toValue(current))
      continue
    }
    if (open.length > DEPTH_MAX) throw new SyncError('SOURCE_INVALID', `the XML is nested deeper than ${DEPTH_MAX}.`)
    const element: Element = { name, members: {}, text: '' }
    for (const [, attribute = '', quoted, apostrophed = ''] of attributes.matchAll(ATTRIBUTE))
      addMember(element, `@${attribute}`, decodeEntities(quoted ?? apostrophed))
    if (empty === '/') addMember(current, name, toValue(element))
    else open.push(element)
  }
  // A truncated document would look like one without its last records.
  if (open.length > 1 || Object.keys(root.members).length !== 1) throw invalidXmlError()
  return root.members
}

interface Element {
  readonly name: string
  readonly members: JsonObject
  text: string
}

const DEPTH_MAX = 256

const SECTIONS = [
  { begin: '<!--', end: '-->', isText: false },
  { begin: '<?', end: '?>', isText: false },
  { begin: '<![CDATA[', end: ']]>', isText: true },
]
const TAG = /<(\/?)([^\s<>/="'!?]+)((?:\s+[^\s<>/="']+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>/y
const ATTRIBUTE = /([^\s<>/="']+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/g

function toValue({ members, text }: Element): JsonValue {
  const content = text.trim()
  if (Object.keys(members).length === 0) return content
  if (content !== '') addMember({ name: '', members, text }, '#text', content)
  return members
}

/** Own properties only: `__proto__` is a valid name. */
function addMember({ members }: Element, name: string, value: JsonValue): void {
  const previous = Object.hasOwn(members, name) ? members[name] : undefined
  if (Array.isArray(previous)) {
    previous.push(value)
    return
  }
  const merged = previous === undefined ? value : [previous, value]
  Object.defineProperty(members, name, { value: merged, writable: true, enumerable: true, configurable: true })
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

function decodeEntities(text: string): string {
  return text.replaceAll(
    /&(?:#(\d{1,7})|#x([\da-fA-F]{1,6})|(\w+));/g,
    (reference, decimal?: string, hex = '', name?: string) => {
      if (name !== undefined) return ENTITIES[name] ?? reference
      const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
      return code > 0x10_ff_ff ? reference : String.fromCodePoint(code)
    },
  )
}

function invalidXmlError(): SyncError {
  return new SyncError('SOURCE_INVALID', 'the XML is truncated or not valid.')
}
