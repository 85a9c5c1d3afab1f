import { SyncError } from '../../contract/index.ts'

export interface Tag {
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
export function* tagsOf(xml: string): Generator<Tag> {
  for (let at = xml.indexOf('<'); at !== -1; at = xml.indexOf('<', at)) {
    const skipped = SKIPPED.find(({ open }) => xml.startsWith(open, at))
    if (skipped !== undefined) {
      const end = xml.indexOf(skipped.close, at + skipped.open.length)
      if (end === -1) throw broken()
      at = end + skipped.close.length
      continue
    }
    if (xml[at + 1] === '!') throw new SyncError('SOURCE_INVALID', 'The service describes itself with a document type of its own, which is not read.')
    const { tag, end } = tagAt(xml, at)
    yield tag
    at = end
  }
}

const SKIPPED = [{ open: '<!--', close: '-->' }, { open: '<?', close: '?>' }, { open: '<![CDATA[', close: ']]>' }]
const NAME = /<(\/?)(?:[^\s:<>/="']+:)?([^\s:<>/="']+)/y
const ATTRIBUTE = /\s+(?:[^\s:<>/="']+:)?([^\s:<>/="']+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y
const END = /\s*(\/?)>/y

function tagAt(xml: string, start: number): { tag: Tag; end: number } {
  let at = start
  const next = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const match = pattern.exec(xml)
    if (match !== null) at = pattern.lastIndex
    return match
  }
  const name = next(NAME)
  if (name === null) throw broken()
  const attributes = new Map<string, string>()
  for (let match = next(ATTRIBUTE); match !== null; match = next(ATTRIBUTE)) attributes.set(match[1]!, plain(match[2] ?? match[3]!))
  const end = next(END)
  if (end === null) throw broken()
  return { tag: { name: name[2]!, kind: name[1] === '/' ? 'close' : end[1] === '/' ? 'empty' : 'open', attributes }, end: at }
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

function plain(text: string): string {
  return text.replaceAll(/&(?:#(\d{1,7})|#x([\da-fA-F]{1,6})|(\w+));/g, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return ENTITIES[name] ?? whole
    const code = decimal === undefined ? Number.parseInt(hex!, 16) : Number(decimal)
    return code > 0x10_ff_ff ? whole : String.fromCodePoint(code)
  })
}

function broken(): SyncError {
  return new SyncError('SOURCE_INVALID', 'The service describes itself with something that is not whole and valid XML.')
}
