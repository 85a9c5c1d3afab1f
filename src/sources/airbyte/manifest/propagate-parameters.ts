import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import { isRecord } from './component.ts'

/** The types of components that manifests leave out. */
const DEFAULT_TYPES: Readonly<Record<string, string>> = {
  'CompositeErrorHandler.error_handlers': 'DefaultErrorHandler',
  'CursorPagination.decoder': 'JsonDecoder',
  'DatetimeBasedCursor.end_datetime': 'MinMaxDatetime',
  'DatetimeBasedCursor.end_time_option': 'RequestOption',
  'DatetimeBasedCursor.start_datetime': 'MinMaxDatetime',
  'DatetimeBasedCursor.start_time_option': 'RequestOption',
  'DeclarativeSource.check': 'CheckStream',
  'DeclarativeSource.spec': 'Spec',
  'DeclarativeSource.streams': 'DeclarativeStream',
  'DeclarativeStream.retriever': 'SimpleRetriever',
  'DeclarativeStream.schema_loader': 'JsonFileSchemaLoader',
  'DynamicDeclarativeStream.stream_template': 'DeclarativeStream',
  'DynamicDeclarativeStream.components_resolver': 'ConfigComponentResolver',
  'HttpComponentsResolver.retriever': 'SimpleRetriever',
  'HttpComponentsResolver.components_mapping': 'ComponentMappingDefinition',
  'ConfigComponentsResolver.stream_config': 'StreamConfig',
  'ConfigComponentsResolver.components_mapping': 'ComponentMappingDefinition',
  'DefaultErrorHandler.response_filters': 'HttpResponseFilter',
  'DefaultPaginator.decoder': 'JsonDecoder',
  'DefaultPaginator.page_size_option': 'RequestOption',
  'DpathExtractor.decoder': 'JsonDecoder',
  'DpathExtractor.record_expander': 'RecordExpander',
  'HttpRequester.error_handler': 'DefaultErrorHandler',
  'ListPartitionRouter.request_option': 'RequestOption',
  'ParentStreamConfig.request_option': 'RequestOption',
  'ParentStreamConfig.stream': 'DeclarativeStream',
  'RecordSelector.extractor': 'DpathExtractor',
  'RecordSelector.record_filter': 'RecordFilter',
  'SimpleRetriever.paginator': 'NoPagination',
  'SimpleRetriever.record_selector': 'RecordSelector',
  'SimpleRetriever.requester': 'HttpRequester',
  'SubstreamPartitionRouter.parent_stream_configs': 'ParentStreamConfig',
  'AddFields.fields': 'AddedFieldDefinition',
  'DynamicSchemaLoader.retriever': 'SimpleRetriever',
  'SchemaTypeIdentifier.types_map': 'TypesMap',
}

type Parameters = Readonly<Record<string, JsonValue | undefined>>

/** Adds missing types, and passes `$parameters` down. A field that a component sets itself wins over a parameter. */
export function propagateParameters(field: string, component: JsonObject, inherited: Parameters = {}): JsonObject {
  const { $parameters: declared, ...fields } = component
  const own: JsonObject = { ...fields }
  if (own.type === undefined && own.class_name === undefined && DEFAULT_TYPES[field] !== undefined)
    own.type = DEFAULT_TYPES[field]
  if (own.type === undefined && own.class_name !== undefined) own.type = 'CustomComponent'
  const parameters: Record<string, JsonValue | undefined> = { ...inherited, ...(isRecord(declared) ? declared : {}) }
  if (isJsonSchema(own)) return own
  if (typeof own.type !== 'string') return propagateIntoNested(field, own, parameters)
  for (const [name, value] of Object.entries(parameters)) if (!isSet(own[name])) own[name] = value
  for (const [name, value] of Object.entries(own)) {
    // A parameter with the name of the field would contain itself without end.
    const { [name]: _, ...others } = parameters
    const path = `${own.type}.${name}`
    if (isRecord(value)) own[name] = propagateParameters(path, value, others)
    else if (Array.isArray(value))
      own[name] = value.map((item) => (isRecord(item) ? propagateParameters(path, item, others) : item))
  }
  if (Object.keys(parameters).length > 0) own.$parameters = parameters
  return own
}

/** Python tests the truth of the field: an empty text gives way to the parameter. */
function isSet(value: JsonValue | undefined): boolean {
  if (Array.isArray(value)) return value.length > 0
  if (isRecord(value)) return Object.keys(value).length > 0
  return Boolean(value)
}

function isJsonSchema({ type }: JsonObject): boolean {
  return type === 'object' || Array.isArray(type) || isRecord(type)
}

function propagateIntoNested(field: string, own: JsonObject, parameters: Parameters): JsonObject {
  for (const [name, value] of Object.entries(own))
    if (isRecord(value) && value.type !== undefined && value.type !== null && value.type !== '')
      own[name] = propagateParameters(field, value, parameters)
  return own
}
