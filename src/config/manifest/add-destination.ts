import { isDeepStrictEqual } from 'node:util'
import { isSeq, parseDocument, stringify } from 'yaml'
import { SyncError } from '../../contract/index.ts'
import type { ManifestDestination } from './manifest-file.ts'

/** Adds an entry to `destinations` of a manifest. Everything else of the text stays as it is, comments included. */
export function addDestination(text: string, entry: ManifestDestination): string {
  const document = parseDocument(text)
  if (document.errors.length > 0) throw new SyncError('MANIFEST_INVALID', 'The manifest is not valid YAML.')
  const list = document.get('destinations')
  if (isSeq(list)) list.add(document.createNode(entry))
  else document.set('destinations', document.createNode([entry]))
  const inserted = insertEntry(text, entry)
  // A list in another notation, such as `[]`, is written by the YAML library, which keeps comments but not all spacing.
  return isDeepStrictEqual(parseValue(inserted), document.toJS()) ? inserted : document.toString({ lineWidth: 0 })
}

/** The text with the entry after the last one of a block list, or in a new list at the end. */
function insertEntry(text: string, entry: ManifestDestination): string {
  const list = parseDocument(text).get('destinations', true)
  const last = isSeq(list) ? (list.items.at(-1) as { range?: [number, number, number] } | undefined) : undefined
  const first = isSeq(list) ? (list.items[0] as { range?: [number, number, number] } | undefined) : undefined
  if (last?.range == null || first?.range == null)
    return `${endLine(text)}destinations:\n${stringify([entry], { lineWidth: 0 }).replaceAll(/^(?=.)/gm, '  ')}`
  const end = last.range[2]
  const dash = text.lastIndexOf('-', first.range[0])
  const indent = ' '.repeat(dash - text.lastIndexOf('\n', dash) - 1)
  const lines = stringify([entry], { lineWidth: 0 }).replaceAll(/^(?=.)/gm, indent)
  return `${endLine(text.slice(0, end))}${lines}${text.slice(end)}`
}

function endLine(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`
}

function parseValue(text: string): unknown {
  const document = parseDocument(text)
  return document.errors.length > 0 ? undefined : document.toJS()
}
