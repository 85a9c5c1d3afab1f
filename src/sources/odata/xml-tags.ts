import { SyncError } from '../../contract/index.ts'

export interface XmlTag {
  /** Local name, without the prefix. */
  readonly name: string
  readonly kind: 'open' | 'close' | 'empty'
  /** Keyed by local name. */
  readonly attributes: ReadonlyMap<string, string>
}

/**
 * Iterates over the tags of an XML document and skips the text between them. Document types and custom entities are not
 * supported: they can reference local files or expand until memory is exhausted.
 */
export function* parseTags(xml: string): Generator<XmlTag> {
  for (let at = xml.indexOf('<'); at !== -1; at = xml.indexOf('<', at)) {
    const skipped = SKIPPED_SECTIONS.find(({ open }) => xml.startsWith(open, at))
    if (skipped !== undefined) {
      const end = xml.indexOf(skipped.close, at + skipped.open.length)
      if (end === -1) throw invalidXmlError()
      at = end + skipped.close.length
      continue
    }
    if (xml[at + 1] === '!')
      throw new SyncError('SOURCE_INVALID', 'The `$metadata` document declares a DOCTYPE, which is not supported.')
    const { tag, end } = parseTagAt(xml, at)
    yield tag
    at = end
  }
}

const SKIPPED_SECTIONS = [
  { open: '<!--', close: '-->' },
  { open: '<?', close: '?>' },
  { open: '<![CDATA[', close: ']]>' },
]
const TAG_NAME = /<(\/?)(?:[^\s:<>/="']+:)?([^\s:<>/="']+)/y
const ATTRIBUTE = /\s+(?:[^\s:<>/="']+:)?([^\s:<>/="']+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y
const TAG_END = /\s*(\/?)>/y

function parseTagAt(xml: string, start: number): { tag: XmlTag; end: number } {
  let at = start
  const next = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const match = pattern.exec(xml)
    if (match !== null) at = pattern.lastIndex
    return match
  }
  const [, slash, name] = next(TAG_NAME) ?? []
  if (name === undefined) throw invalidXmlError()
  const attributes = new Map<string, string>()
  for (let match = next(ATTRIBUTE); match !== null; match = next(ATTRIBUTE)) {
    const [, attribute = '', quoted, apostrophed = ''] = match
    attributes.set(attribute, decodeEntities(quoted ?? apostrophed))
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

function invalidXmlError(): SyncError {
  return new SyncError('SOURCE_INVALID', 'The `$metadata` document is truncated or not valid XML.')
}
