import type { ManifestDestination } from '../../config/manifest/manifest-file.ts'

/** The lines of a worker file that declare a destination. */
export function formatDestinationCode({
  name,
  connector,
  config,
  databases,
  mode,
  schedule,
}: ManifestDestination): string {
  const factory = toCamelCase(connector)
  const options = {
    ...(databases !== undefined && { databases }),
    ...(mode !== undefined && { mode }),
    ...(schedule !== undefined && { schedule }),
  }
  const last = Object.keys(options).length === 0 ? '' : `, ${formatValue(options)}`
  return [
    `import { ${factory} } from 'tidemark/destinations/${connector}'`,
    '',
    `worker.destination(${quote(name)}, ${factory}(${formatValue(config)})${last})`,
  ].join('\n')
}

function formatValue(value: unknown): string {
  if (typeof value === 'string') {
    const variable = /^\$\{(\w+)\}$/.exec(value)?.[1]
    return variable === undefined ? quote(value) : `process.env[${quote(variable)}]!`
  }
  if (Array.isArray(value)) return `[${value.map(formatValue).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const fields = Object.entries(value).map(([name, field]) => `${toCamelCase(name)}: ${formatValue(field)}`)
  return `{ ${fields.join(', ')} }`
}

/** Fields of a manifest are in snake_case, options of a function in camelCase. */
function toCamelCase(name: string): string {
  return name.replaceAll(/[-_](\w)/g, (_, letter: string) => letter.toUpperCase())
}

function quote(text: string): string {
  return `'${JSON.stringify(text)
    .slice(1, -1)
    .replaceAll(String.raw`\"`, '"')
    .replaceAll("'", String.raw`\'`)}'`
}
