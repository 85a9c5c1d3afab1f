import { SyncError } from '../../contract/index.ts'

export interface XmlTag {
  /** Without its prefix. */
  readonly name: string
  readonly kind: 'open' | 'close' | 'empty'
  /** Under their names without prefixes. */
  readonly attributes: ReadonlyMap<string, string>
}

/**
 * The tags of an XML text, one after the other; what stands between them is left out. It knows no document types and so no
 * entities of anybody's own: a few lines of those can name a file of this machine, or grow until the memory is full.
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
    if (xml[at + 1] === '!') throw new SyncError('SOURCE_INVALID', 'The service describes itself with a document type of its own, which is not read.')
    const { tag, end } = parseTagAt(xml, at)
    yield tag
    at = end
  }
}

const SKIPPED_SECTIONS = [{ open: '<!--', close: '-->' }, { open: '<?', close: '?>' }, { open: '<![CDATA[', close: ']]>' }]
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
  const name = next(TAG_NAME)
  if (name === null) throw invalidXmlError()
  const attributes = new Map<string, string>()
  for (let match = next(ATTRIBUTE); match !== null; match = next(ATTRIBUTE)) attributes.set(match[1]!, decodeEntities(match[2] ?? match[3]!))
  const end = next(TAG_END)
  if (end === null) throw invalidXmlError()
  return { tag: { name: name[2]!, kind: name[1] === '/' ? 'close' : end[1] === '/' ? 'empty' : 'open', attributes }, end: at }
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

function decodeEntities(text: string): string {
  return text.replaceAll(/&(?:#(\d{1,7})|#x([\da-fA-F]{1,6})|(\w+));/g, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return ENTITIES[name] ?? whole
    const code = decimal === undefined ? Number.parseInt(hex!, 16) : Number(decimal)
    return code > 0x10_ff_ff ? whole : String.fromCodePoint(code)
  })
}

function invalidXmlError(): SyncError {
  return new SyncError('SOURCE_INVALID', 'The service describes itself with something that is not whole and valid XML.')
}
