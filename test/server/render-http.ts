import { HTTP_ERRORS } from '../../src/server/http-error.ts'
import type { Access, Route } from '../../src/server/route.ts'
import { COMPONENTS, type JsonSchema } from '../../src/server/schemas.ts'

const INTRO = `# The HTTP interface

Written from the schemas that check requests; \`/openapi.json\` is made of the same. [The guide](../guides/serve-the-feed.md) says how to use it.

Send the key as \`Authorization: Bearer …\` or as \`X-Agents-Token\`. Every answer has an \`X-Request-Id\` and is not to be stored;
answers to a key say in \`X-RateLimit-Limit\`, \`-Remaining\` and \`-Reset\` (Unix seconds) how often it may still ask.
Parameters that are not listed are ignored; one that is given twice is refused.
A database called \`changes\`, \`capabilities\` or \`schema\` has no list of its own; its rows are in the changes. One called \`sync\` is read with
the scope \`*:read\`.
`

/** The page docs/reference/http.md. */
export function renderHttp(routes: readonly Route[]): string {
  const errors = Object.entries(HTTP_ERRORS).map(
    ([code, { status, meaning }]) => `| ${status} | \`${code}\` | ${meaning} |`,
  )
  return (
    [
      INTRO,
      ...routes.map(renderRoute),
      '## Errors\n',
      'One shape: `{ error, message, status, requestId, details? }`.\n',
      '| status | code | meaning |',
      '|---|---|---|',
      ...errors,
      '',
      ...Object.entries(COMPONENTS).flatMap(([name, schema]) => [
        `## ${name}\n`,
        '| member | type | |',
        '|---|---|---|',
        ...members(schema),
        '',
      ]),
    ]
      .join('\n')
      .trimEnd() + '\n'
  )
}

function renderRoute({ method, path, summary, access, params, query, body }: Route): string {
  const rows = [...members(params, 'path'), ...members(query, 'query'), ...members(body, 'body')]
  return [
    `## ${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}\n`,
    `${summary} ${whoMay(access)}\n`,
    ...(rows.length === 0 ? [] : ['| parameter | type | |', '|---|---|---|', ...rows, '']),
  ].join('\n')
}

function whoMay(access: Access): string {
  switch (access.kind) {
    case 'public':
      return 'Public.'
    case 'open':
      return 'Public; a caller with a key sees more.'
    case 'key':
      return 'For every valid key.'
    case 'scope':
      return `Requires the scope \`${access.scope.replace(/^:(\w+)/, '<$1>')}\`.`
    case 'control':
      return `Requires the scope \`${access.scope}\`, unless the server listens on loopback only.`
    default:
      return access satisfies never
  }
}

function members(schema: JsonSchema | undefined, place?: 'path' | 'query' | 'body'): string[] {
  return Object.entries((schema?.['properties'] ?? {}) as Record<string, JsonSchema>).map(([name, member]) => {
    const {
      description = '',
      minimum,
      maximum,
      default: usual,
    } = member as { description?: string; minimum?: number; maximum?: number; default?: unknown }
    const range =
      maximum === undefined
        ? ''
        : ` ${minimum} to ${maximum}${usual === undefined ? '' : `, ${String(usual)} when absent`}.`
    return `| \`${name}\`${place === undefined || place === 'query' ? '' : ` (${place})`} | ${typeOf(member)} | ${`${description}${range}`.trim()} |`
  })
}

function typeOf({ type, enum: values, $ref: to }: JsonSchema): string {
  if (Array.isArray(values)) return values.map((value) => `\`${String(value)}\``).join(', ')
  if (typeof to === 'string') return to.split('/').at(-1)!
  return Array.isArray(type) ? type.join(' or ') : String(type)
}
