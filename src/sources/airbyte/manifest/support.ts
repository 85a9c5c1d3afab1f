import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import { parseTemplate, asNode } from '../jinja/evaluate.ts'
import { hasFilter } from '../jinja/filters.ts'
import { isTemplate, visit } from '../jinja/interpolation.ts'
import { hasTest } from '../jinja/tests.ts'
import { isRecord, type Component } from './component.ts'
import type { Manifest, ManifestStream } from './manifest.ts'

/** A part of a manifest that cannot be run. */
export interface Problem {
  /** The type of the component, or the feature of a template. */
  readonly feature: string
  readonly line: number | null
}

/** The component types that are interpreted. */
const SUPPORTED_TYPES: ReadonlySet<string> = new Set([
  'AddFields',
  'AddedFieldDefinition',
  'ApiKeyAuthenticator',
  'BasicHttpAuthenticator',
  'BearerAuthenticator',
  'CompositeErrorHandler',
  'ConstantBackoffStrategy',
  'CsvDecoder',
  'CursorPagination',
  'DatetimeBasedCursor',
  'DeclarativeStream',
  'DefaultErrorHandler',
  'DefaultPaginator',
  'DpathExtractor',
  'DpathFlattenFields',
  'DynamicSchemaLoader',
  'ExponentialBackoffStrategy',
  'FixedWindowCallRatePolicy',
  'GroupingPartitionRouter',
  'GzipDecoder',
  'HTTPAPIBudget',
  'HttpRequestRegexMatcher',
  'HttpRequester',
  'HttpResponseFilter',
  'InlineSchemaLoader',
  'IterableDecoder',
  'JsonDecoder',
  'JsonFileSchemaLoader',
  'JsonlDecoder',
  'KeysReplace',
  'KeysToLower',
  'KeysToSnakeCase',
  'LegacySessionTokenAuthenticator',
  'ListPartitionRouter',
  'MinMaxDatetime',
  'MovingWindowCallRatePolicy',
  'NoAuth',
  'NoPagination',
  'OAuthAuthenticator',
  'OffsetIncrement',
  'PageIncrement',
  'PaginationReset',
  'ParentStreamConfig',
  'Rate',
  'RecordFilter',
  'RecordSelector',
  'RemoveFields',
  'RequestBodyGraphQL',
  'RequestBodyJsonObject',
  'RequestBodyPlainText',
  'RequestBodyUrlEncodedForm',
  'RequestOption',
  'RequestPath',
  'SelectiveAuthenticator',
  'SessionTokenAuthenticator',
  'SessionTokenRequestApiKeyAuthenticator',
  'SessionTokenRequestBearerAuthenticator',
  'ApiKey',
  'Bearer',
  'SimpleRetriever',
  'SubstreamPartitionRouter',
  'UnlimitedCallRatePolicy',
  'WaitTimeFromHeader',
  'WaitUntilTimeFromHeader',
  'XmlDecoder',
])

/** Fields whose content is data for the framework, the user or a schema, and never a component. */
const IGNORED_FIELDS: ReadonlySet<string> = new Set([
  '$parameters',
  'schema_loader',
  'schema_normalization',
  'state_migrations',
  'decompressed_schema',
  'metadata',
  'request_headers_schema',
])

/** Fields of supported types that are not interpreted. */
const UNSUPPORTED_FIELDS: Readonly<Record<string, readonly string[]>> = {
  SimpleRetriever: ['additional_query_properties', 'page_size_reduction', 'request_window_splitting'],
  RecordSelector: ['file_uploader'],
  DpathExtractor: ['record_expander'],
  DpathFlattenFields: ['key_transformation'],
  DeclarativeStream: ['file_uploader'],
  OAuthAuthenticator: ['profile_assertion'],
}

/** Types at the top of a manifest that change its streams or its config. */
const UNSUPPORTED_ROOTS = ['dynamic_streams'] as const

/** Lists the parts that a stream uses and Tidemark cannot run. */
export function findProblems(manifest: Manifest, { component }: ManifestStream): Problem[] {
  const problems = new Map<string, Problem>()
  const add = (feature: string, type = feature): void => {
    if (!problems.has(feature)) problems.set(feature, { feature, line: manifest.lines.get(type) ?? null })
  }
  inspect(component, add)
  if (manifest.budget !== null) inspect(manifest.budget, add)
  return [...problems.values()]
}

/** Problems of the manifest itself: streams that are made at run time. */
export function findRootProblems(manifest: Manifest): Problem[] {
  const names = UNSUPPORTED_ROOTS.filter((name) => Array.isArray(manifest.root[name]))
  const conditional = Array.isArray(manifest.root.streams)
    ? manifest.root.streams.filter((stream) => isRecord(stream) && stream.type !== 'DeclarativeStream')
    : []
  const types = conditional.map((stream) => String((stream as JsonObject).type))
  return [...names.map((name) => (name === 'dynamic_streams' ? 'DynamicDeclarativeStream' : name)), ...types].map(
    (feature) => ({ feature, line: manifest.lines.get(feature) ?? null }),
  )
}

type Report = (feature: string, type?: string) => void

function inspect(value: JsonValue | undefined, add: Report): void {
  if (typeof value === 'string') return inspectTemplate(value, add)
  if (Array.isArray(value)) return value.forEach((item) => inspect(item, add))
  if (!isRecord(value)) return
  if (typeof value.type === 'string' && /^[A-Z]/.test(value.type)) inspectComponent(value as Component, add)
  for (const [name, member] of Object.entries(value)) if (!IGNORED_FIELDS.has(name)) inspect(member, add)
}

function inspectComponent(component: Component, add: Report): void {
  const { type } = component
  if (typeof component.class_name === 'string') return add(type, component.class_name)
  if (!SUPPORTED_TYPES.has(type)) return add(type)
  for (const field of UNSUPPORTED_FIELDS[type] ?? [])
    if (component[field] !== undefined && component[field] !== null) add(`${type}.${field}`, type)
  if (type === 'DatetimeBasedCursor' && isRecord(component.clamping)) add(`${type}.clamping`, type)
  if (type === 'OAuthAuthenticator')
    for (const [field, standard] of Object.entries(OAUTH_NAMES))
      if (isSet(component[field]) && component[field] !== standard)
        add(`${type}.${field}: ${JSON.stringify(component[field])}`, type)
  if (type === 'HttpResponseFilter' && UNSUPPORTED_ACTIONS.has(String(component.action)))
    add(`${type}.action: ${String(component.action)}`, type)
}

/** Names of the fields in requests and responses of tokens. A token without a known lifetime is renewed when it is refused. */
const OAUTH_NAMES: Readonly<Record<string, string>> = {
  access_token_name: 'access_token',
  refresh_token_name: 'refresh_token',
  client_id_name: 'client_id',
  client_secret_name: 'client_secret',
  grant_type_name: 'grant_type',
}

function isSet(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null && value !== ''
}

const UNSUPPORTED_ACTIONS = new Set(['REDUCE_PAGE_SIZE', 'SPLIT_REQUEST_WINDOW'])

function inspectTemplate(text: string, add: Report): void {
  if (!isTemplate(text)) return
  try {
    visit(parseTemplate(text), (node) => {
      if (node.type === 'FilterExpression') requireKnown('filter', nameOf(node.filter), hasFilter, add)
      if (node.type === 'TestExpression') requireKnown('test', nameOf(node.test), hasTest, add)
      if (['Macro', 'CallStatement', 'Break', 'Continue'].includes(node.type)) add(`template statement ${node.type}`)
    })
  } catch {
    add('template syntax')
  }
}

function nameOf(value: unknown): string {
  const node = asNode(value)
  return String(node.type === 'CallExpression' ? asNode(node.callee).value : node.value)
}

function requireKnown(kind: string, name: string, isKnown: (name: string) => boolean, add: Report): void {
  if (name !== 'null' && !isKnown(name)) add(`template ${kind} ${name}`)
}

/** Describes problems for an error: the type and the line of each. */
export function describeProblems(problems: readonly Problem[]): string {
  return problems.map(({ feature, line }) => (line === null ? feature : `${feature} (line ${line})`)).join(', ')
}
