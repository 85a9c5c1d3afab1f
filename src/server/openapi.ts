import { databaseReadScope } from './api-key.ts'
import { toComponent, type DatabaseSchema } from './database-schemas.ts'
import { HTTP_ERRORS } from './http-error.ts'
import type { Route } from './route.ts'
import { COMPONENTS, LIST_RESPONSE, objectSchema, schemaRef, ROW_RESPONSE, type JsonSchema } from './schemas.ts'

/**
 * Built from the schemas that validate requests. The given databases get paths of their own, with their record types.
 */
export function buildOpenApiDocument(
  routes: readonly Route[],
  version: string,
  databases: readonly DatabaseSchema[] = [],
): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes)
    (paths[toOpenApiPath(route)] ??= {})[route.method.toLowerCase()] = describeOperation(route)
  const schemas: Record<string, JsonSchema> = { ...COMPONENTS }
  for (const { name, schema } of databases) {
    schemas[`Record_${name}`] = toComponent(schema, `#/components/schemas/Record_${name}`)
    schemas[`Row_${name}`] = objectSchema({
      ...(COMPONENTS['Row']?.['properties'] as object),
      record: schemaRef(`Record_${name}`),
    })
    for (const route of routes.flatMap((route) => specializeRoute(route, name)))
      if (paths[toOpenApiPath(route)] === undefined) paths[toOpenApiPath(route)] = { get: describeOperation(route) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tidemark',
      version,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      description: 'Databases as lists, and their changes as a feed: no gaps, at-least-once delivery, in commit order.',
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }, { token: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'A key created by `tidemark keys create`.' },
        token: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Agents-Token',
          description: 'The same key, for clients that cannot send a bearer token.',
        },
      },
      schemas,
    },
  }
}

/** Specializes the list and row routes for one database. */
function specializeRoute(route: Route, name: string): Route[] {
  const responses: Record<string, JsonSchema> = {
    listRows: objectSchema({
      ...(LIST_RESPONSE['properties'] as object),
      data: { type: 'array', items: schemaRef(`Row_${name}`) },
    }),
    getRow: objectSchema({ ...(ROW_RESPONSE['properties'] as object), data: schemaRef(`Row_${name}`) }),
  }
  const response = responses[route.id]
  if (response === undefined) return []
  const { database: _, ...params } = (route.params?.['properties'] ?? {}) as Record<string, JsonSchema>
  return [
    {
      ...route,
      id: `${route.id}_${name}`,
      path: route.path.replace(':database', name),
      access: { kind: 'scope', scope: databaseReadScope(name) },
      params: objectSchema(params),
      response,
      summary: `${route.summary} Database: ${name}.`,
    },
  ]
}

const TAGS = { feed: 'Lists and changes.', control: 'Status and control of syncs.', server: 'The server itself.' }

function describeOperation(route: Route): Record<string, unknown> {
  const {
    id,
    summary,
    access,
    params,
    query,
    body,
    response,
    mediaType = 'application/json',
    path,
    rawBytesMax,
  } = route
  const parameters = [...describeParameters(params, 'path'), ...describeParameters(query, 'query')]
  const errors =
    rawBytesMax !== undefined
      ? [401, 404, 405, 413, 503]
      : access.kind === 'public'
        ? [405, 503]
        : access.kind === 'open'
          ? [401, 405, 429, 503]
          : [400, 401, 403, 404, 405, 429, 503]
  return {
    operationId: id,
    summary,
    tags: [
      path.startsWith('/api')
        ? 'control'
        : path.startsWith('/agents') && access.kind === 'scope'
          ? 'feed'
          : path.startsWith('/agents/v1/sync-state')
            ? 'feed'
            : 'server',
    ],
    ...(access.kind === 'public'
      ? { security: [] }
      : access.kind === 'open'
        ? { security: [{}, { bearer: [] }, { token: [] }] }
        : {}),
    ...(access.kind === 'scope' || access.kind === 'control'
      ? {
          description: `Requires the scope \`${access.scope.replace(/^:(\w+)/, '<$1>')}\`${access.kind === 'control' ? ', unless the server listens on loopback only' : ''}.`,
        }
      : {}),
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: { required: body['required'] !== undefined, content: { 'application/json': { schema: body } } },
    }),
    ...(rawBytesMax !== undefined && {
      requestBody: {
        description: `The raw body, at most ${rawBytesMax} bytes.`,
        required: true,
        content: { '*/*': { schema: {} } },
      },
    }),
    responses: {
      ...(id === 'receiveWebhook' && {
        202: { description: 'Stored, to be processed later.', content: { [mediaType]: { schema: response } } },
      }),
      200: {
        description: 'Success.',
        content: {
          [mediaType]: { schema: response },
          ...(id === 'listChanges' && { 'text/event-stream': { schema: { type: 'string' } } }),
        },
      },
      ...Object.fromEntries(
        errors.map((status) => [
          status,
          { description: describeStatus(status), content: { 'application/json': { schema: schemaRef('Error') } } },
        ]),
      ),
    },
  }
}

function describeParameters(schema: JsonSchema | undefined, location: 'path' | 'query'): object[] {
  const required = (schema?.['required'] ?? []) as string[]
  return Object.entries((schema?.['properties'] ?? {}) as Record<string, JsonSchema>).map(
    ([name, { description, ...rest }]) => ({
      name,
      in: location,
      required: location === 'path' || required.includes(name),
      ...(description !== undefined && { description }),
      schema: rest,
    }),
  )
}

function toOpenApiPath({ path }: Route): string {
  return path.replaceAll(/:(\w+)/g, '{$1}')
}

function describeStatus(status: number): string {
  return Object.values(HTTP_ERRORS).find((error) => error.status === status)?.meaning ?? ''
}
