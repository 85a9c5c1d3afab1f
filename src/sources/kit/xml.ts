import { SyncError, type JsonObject, type JsonValue } from '../../contract/index.ts'

/** A tag, and the text between it and the tag before it. */
export interface XmlTag {
  /** With its prefix. */
  readonly name: string
  readonly kind: 'open' | 'close' | 'empty'
  readonly attributes: ReadonlyArray<readonly [name: string, value: string]>
  readonly textBefore: string
}

/**
 * Iterates over the tags of an XML document. A document type is refused: it can refer to local files, or expand until
 * memory is exhausted.
 */
export function* parseXmlTags(xml: string): Generator<XmlTag> {
  let text = ''
  let at = 0
  for (let start = xml.indexOf('<'); start !== -1; start = xml.indexOf('<', at)) {
    text += decodeEntities(xml.slice(at, start))
    const section = SECTIONS.find(({ begin }) => xml.startsWith(begin, start))
    if (section !== undefined) {
      const end = xml.indexOf(section.end, start + section.begin.length)
      if (end === -1) throw invalidXmlError()
      if (section.isText) text += xml.slice(start + section.begin.length, end)
      at = end + section.end.length
      continue
    }
    if (xml[start + 1] === '!')
      throw new SyncError('SOURCE_INVALID', 'The XML declares a DOCTYPE, which is not supported.')
    const { tag, end } = parseTagAt(xml, start)
    yield { ...tag, textBefore: text }
    text = ''
    at = end
  }
  if (`${text}${xml.slice(at)}`.trim() !== '') throw invalidXmlError()
}

const SECTIONS = [
  { begin: '<!--', end: '-->', isText: false },
  { begin: '<?', end: '?>', isText: false },
  { begin: '<![CDATA[', end: ']]>', isText: true },
]
const TAG_NAME = /<(\/?)([^\s<>/="'!?]+)/y
const ATTRIBUTE = /\s+([^\s<>/="']+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y
const TAG_END = /\s*(\/?)>/y

function parseTagAt(xml: string, start: number): { tag: Omit<XmlTag, 'textBefore'>; end: number } {
  let at = start
  const next = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const match = pattern.exec(xml)
    if (match !== null) at = pattern.lastIndex
    return match
  }
  const [, slash, name] = next(TAG_NAME) ?? []
  if (name === undefined) throw invalidXmlError()
  const attributes: Array<readonly [string, string]> = []
  for (let match = next(ATTRIBUTE); match !== null; match = next(ATTRIBUTE)) {
    const [, attribute = '', quoted, apostrophed = ''] = match
    attributes.push([attribute, decodeEntities(quoted ?? apostrophed)])
  }
  const end = next(TAG_END)
  if (end === null) throw invalidXmlError()
  return { tag: { name, kind: slash === '/' ? 'close' : end[1] === '/' ? 'empty' : 'open', attributes }, end: at }
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

/**
 * Reads an XML document as JSON: an element is an object of its children, an attribute a member with `@`, the text of an
 * element with attributes or children the member `#text`. An element without either is its text, or `empty` if it has
 * none; repeated elements are a list. Names keep their prefix.
 */
export function parseXml(xml: string, { empty = '' }: { readonly empty?: JsonValue } = {}): JsonValue {
  const root: Element = { name: '', members: {}, text: '' }
  const open: Element[] = [root]
  for (const { name, kind, attributes, textBefore } of parseXmlTags(xml)) {
    const current = open.at(-1) ?? root
    current.text += textBefore
    if (kind === 'close') {
      if (open.length === 1 || current.name !== name) throw invalidXmlError()
      open.pop()
      addMember(open.at(-1) ?? root, name, toValue(current, empty))
      continue
    }
    if (open.length > DEPTH_MAX) throw new SyncError('SOURCE_INVALID', `The XML is nested deeper than ${DEPTH_MAX}.`)
    const element: Element = { name, members: {}, text: '' }
    for (const [attribute, value] of attributes) addMember(element, `@${attribute}`, value)
    if (kind === 'empty') addMember(current, name, toValue(element, empty))
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

function toValue({ members, text }: Element, empty: JsonValue): JsonValue {
  const content = text.trim()
  if (Object.keys(members).length === 0) return content === '' ? empty : content
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

function invalidXmlError(): SyncError {
  return new SyncError('SOURCE_INVALID', 'The XML is truncated or not valid.')
}
