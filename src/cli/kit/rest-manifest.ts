import { stringify } from 'yaml'

/** A manifest of the `rest` source, before it is text. */
export interface RestManifest {
  readonly comments: readonly string[]
  readonly config: object
  readonly streams: ReadonlyArray<{
    readonly id: string
    readonly key: string
    readonly cursor: string | null
    readonly options: object
    readonly comments: readonly string[]
  }>
  readonly leftOut?: readonly string[]
}

/** The same manifest gives the same text. */
export function formatRestManifest({ comments, config, streams, leftOut = [] }: RestManifest): string {
  return [
    ...toComments(comments),
    stringify({ connector: 'rest', config }, FORMAT).trimEnd(),
    'streams:',
    ...streams.flatMap((stream) => formatStream(stream)),
    ...(leftOut.length === 0 ? [] : ['', '# Left out:']),
    ...toComments(leftOut),
    '',
  ].join('\n')
}

function formatStream({ id, key, cursor, options, comments }: RestManifest['streams'][number]): string[] {
  const text = stringify([{ id, key: [key], ...(cursor !== null && { cursor }), options }], FORMAT)
  return [...toComments(comments), ...text.trimEnd().split('\n')].map((line) => `  ${line}`)
}

const FORMAT = { lineWidth: 0, aliasDuplicateObjects: false } as const

/** Texts of a document or an API cannot end a comment. */
function toComments(lines: readonly string[]): string[] {
  return lines.map((line) => `# ${line.replaceAll(/\p{Cc}+/gu, ' ')}`)
}
