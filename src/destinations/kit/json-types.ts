import type { DestinationDescriptor } from './define-destination.ts'

/** The types of a destination that receives records as JSON. */
export const JSON_TYPES: DestinationDescriptor['types'] = {
  bigint: 'number, with all its digits',
  boolean: 'boolean',
  bytes: 'string in base64',
  date: 'string, such as 2026-01-31',
  datetime: 'string, as the source wrote it',
  decimal: 'string of digits',
  double: 'number',
  json: 'any value',
  numeric: 'number, with all its digits',
  text: 'string',
  time: 'string, such as 12:00:00',
  timestamp: 'string, RFC 3339',
  uuid: 'string',
  list: 'array',
}
