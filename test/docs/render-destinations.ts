import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DestinationDescriptor } from '../../src/destinations/kit/define-destination.ts'
import { DESTINATIONS } from '../../src/destinations/registry.ts'
import { SECRET_SCHEMA } from '../../src/values/config-schema.ts'
import { ROOT } from '../cli/package.ts'
import { membersOf } from './render-sources.ts'

const DESCRIPTORS = Object.values<DestinationDescriptor>(DESTINATIONS)

/** Renders docs/reference/destinations.md: options from the interfaces and their comments, the rest from the descriptors. */
export function renderDestinations(): string {
  return [
    '# The destinations and their options',
    '',
    'Every destination of `tidemark/destinations/*`. Options and their descriptions come from `src/destinations/`. See',
    '[the guide](../guides/destinations.md) for modes, guarantees and commands.',
    '',
    '| destination | import | install |',
    '|---|---|---|',
    ...DESCRIPTORS.map(({ name, title, install = {} }) =>
      row(
        `[${title}](#${anchorOf(title)})`,
        `\`tidemark/destinations/${name}\``,
        Object.keys(install).length === 0 ? 'nothing' : `\`npm install ${Object.keys(install).join(' ')}\``,
      ),
    ),
    ...DESCRIPTORS.flatMap(sectionOf),
    '',
  ].join('\n')
}

/** The guide of a destination with its generated tables between the markers. */
export function renderGuide(name: string): string {
  const text = readFileSync(guideOf(name), 'utf8')
  const { types, limits } = DESCRIPTORS.find((one) => one.name === name)!
  const tables = [
    '<!-- types -->',
    '',
    '| type in the store | stored as |',
    '|---|---|',
    ...Object.entries(types).map(([type, column]) => row(`\`${type}\``, column)),
    '',
    '| what does not fit | stored |',
    '|---|---|',
    ...limits.map(([what, policy]) => row(what, policy)),
    '',
    '<!-- /types -->',
  ].join('\n')
  if (!text.includes('<!-- types -->')) throw new Error(`${guideOf(name)} has no line <!-- types -->.`)
  return text.replace(/<!-- types -->(?:[\s\S]*?<!-- \/types -->)?/, () => tables)
}

/** docs/guides/destinations.md with the list of systems between the markers. */
export function renderOverview(): string {
  const text = readFileSync(join(ROOT, 'docs/guides/destinations.md'), 'utf8')
  const table = [
    '<!-- systems -->',
    '',
    '| system | import | needs |',
    '|---|---|---|',
    ...DESCRIPTORS.map(({ name, title, install = {} }) =>
      row(
        `[${title}](destinations/${name}.md)`,
        `\`tidemark/destinations/${name}\``,
        Object.keys(install)
          .map((one) => `\`${one}\``)
          .join(', ') || 'nothing',
      ),
    ),
    '',
    '<!-- /systems -->',
  ].join('\n')
  return text.replace(/<!-- systems -->(?:[\s\S]*?<!-- \/systems -->)?/, () => table)
}

export function guideOf(name: string): string {
  return join(ROOT, `docs/guides/destinations/${name}.md`)
}

function sectionOf({ name, title, config }: DestinationDescriptor): string[] {
  const options = findOptions(name)
  const properties: Readonly<Record<string, object>> = config.properties
  return [
    '',
    `## ${title}`,
    '',
    `Import \`tidemark/destinations/${name}\`.${existsSync(guideOf(name)) ? ` See [the guide](../guides/destinations/${name}.md).` : ''}`,
    '',
    '| option | type | in a manifest | meaning |',
    '|---|---|---|---|',
    ...membersOf({ file: options.file, name: options.name }).map(({ name: option, type, isRequired }) => {
      const field = option.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      const schema = properties[field] as { pattern?: string } | undefined
      const written = schema?.pattern === SECRET_SCHEMA.pattern ? `\`${field}: \${NAME}\`` : `\`${field}\``
      return row(
        `\`${option}\`${isRequired ? ', required' : ''}`,
        `\`${type}\``,
        schema === undefined ? '–' : written,
        readComment(options.text, option),
      )
    }),
  ]
}

/** The interface of the options of the exported function with the name of the destination. */
function findOptions(name: string): { file: string; name: string; text: string } {
  const folder = join(ROOT, 'src/destinations', name)
  const factory = name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
  const code = readFileSync(join(folder, 'destination.ts'), 'utf8')
  const options = new RegExp(`^export function ${factory}\\([\\s\\S]*?: (\\w+Options)\\b`, 'm').exec(code)?.[1]
  if (options === undefined) throw new Error(`${folder}/destination.ts exports no function ${factory}(options).`)
  for (const file of readdirSync(folder).filter((one) => one.endsWith('.ts'))) {
    const text = readFileSync(join(folder, file), 'utf8')
    const body = new RegExp(`^export interface ${options}\\b[^{]*\\{\\n[\\s\\S]*?^\\}`, 'm').exec(text)?.[0]
    if (body !== undefined) return { file: `../destinations/${name}/${file}`, name: options, text: body }
  }
  throw new Error(`${folder} has no interface ${options}.`)
}

function readComment(text: string, option: string): string {
  const found =
    new RegExp(`/\\*\\*((?:(?!\\*/)[\\s\\S])*)\\*/\\n {2}(?:readonly )?${option}\\??:`).exec(text)?.[1] ?? ''
  return found.replaceAll(/\s*\n\s*\* ?/g, ' ').trim()
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
