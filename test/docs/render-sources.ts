import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../cli/package.ts'
import type { OptionGroup } from '../../src/sources/kit/source-reference.ts'
import { SOURCES, type SourceFacts } from './source-facts.ts'

/** Renders docs/reference/sources.md: names and types from the interfaces, the rest from `reference.ts` of each source. */
export function renderSources(): string {
  return [
    '# The sources and their options',
    '',
    'Every source of `tidemark/sources/*` with its streams, its options and its requirements. Names and types come from `src/sources/`.',
    '',
    "A secret is written as the name of a variable (`'STRIPE_KEY'`) and read when a request needs it. Every request also waits for the",
    'pacers of its sync (`worker.pacer`) and for pauses that the source has requested, in all processes. See',
    '[the worker configuration](config.md) for the options of a sync.',
    '',
    '| source | import | sees deletions | lag | retention |',
    '|---|---|---|---|---|',
    ...SOURCES.map(({ folder, title, deletions, lag, retention }) =>
      row(`[${title}](#${anchorOf(title)})`, `\`tidemark/sources/${folder}\``, deletions, lag, retention),
    ),
    '',
    '## Start dates and ranges',
    '',
    '`since` limits a source to records from a date on, and `tidemark backfill --from --to` reads a range of times again; see [the',
    'guide](../guides/ranges-and-order.md). Streams whose records have no times read no ranges.',
    '',
    '| source | `since` | ranges |',
    '|---|---|---|',
    ...SOURCES.map(({ title, times: { since, range } }) => row(title, describeSupport(since), describeSupport(range))),
    ...SOURCES.flatMap(sectionOf),
    '',
  ].join('\n')
}

function describeSupport(support: true | string): string {
  return support === true ? 'yes' : `no: ${support}`
}

function sectionOf({
  folder,
  title,
  auth,
  streams,
  lag,
  retention,
  deletions,
  pace,
  types,
  guide,
  groups,
}: SourceFacts): string[] {
  return [
    '',
    `## ${title}`,
    '',
    `Import \`tidemark/sources/${folder}\`.${guide === undefined ? '' : ` See [the guide](../guides/${guide}).`}`,
    '',
    `- Needs: ${auth}`,
    `- Lag: ${lag}`,
    `- Retention: ${retention}`,
    `- Deletions: ${deletions}`,
    `- Rate limits: ${pace}`,
    ...(types === undefined ? [] : [`- Types: ${types}`]),
    '',
    '| stream | mode | records |',
    '|---|---|---|',
    ...streams.map(([name, mode, what]) => row(`\`${name}\``, mode, what)),
    ...groups.flatMap(tableOf),
  ]
}

function tableOf(group: OptionGroup): string[] {
  return [
    '',
    `### ${group.title.includes('`') ? group.title : `\`${group.title}\``}`,
    '',
    '| option | type | default | meaning |',
    '|---|---|---|---|',
    ...membersOf(group).map(({ name, type, isRequired }) => {
      const [fallback, meaning] = group.members[name] ?? [null, '']
      return row(`\`${name}\``, `\`${type}\``, isRequired ? 'required' : (fallback ?? 'none'), meaning)
    }),
  ]
}

function row(...cells: string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-')
}

export interface OptionMember {
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
}

/** The fields of the interface itself, without inherited ones. */
export function membersOf({ file, name }: Pick<OptionGroup, 'file' | 'name'>): OptionMember[] {
  const text = readFileSync(join(ROOT, 'src/sources', file), 'utf8')
  const body = new RegExp(`^export interface ${name}\\b[^{]*\\{\\n([\\s\\S]*?)^\\}`, 'm').exec(text)?.[1]
  if (body === undefined) throw new Error(`${file} has no interface ${name}.`)
  // A type may take several lines; they are indented further than its field.
  const lines = body
    .replaceAll(/\/\*\*[\s\S]*?\*\//g, '')
    .replaceAll(/\n {4}(?=readonly)/g, '; ')
    .replaceAll(/\n {4,}/g, ' ')
    .replaceAll(/\n {2}\}/g, ' }')
    .split('\n')
  return lines.flatMap((line) => {
    const [, member, optional, type] = /^ {2}(?:readonly )?(\w+)(\??): *(.+)$/.exec(line) ?? []
    if (member === undefined) return []
    return [
      {
        name: member,
        type: type!
          .replaceAll(/\s+/g, ' ')
          .replaceAll(/\breadonly (?=\w+\??:|\[)/g, '')
          .replaceAll('{; ', '{ ')
          .replace(/^\| /, '')
          .replace(/ \| undefined$/, '')
          .trim(),
        isRequired: optional === '',
      },
    ]
  })
}
