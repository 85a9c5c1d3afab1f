import {
  CONNECTION_SCHEMA,
  objectSchema,
  requireOneOf,
  SECRET_SCHEMA,
  TEXT_SCHEMA,
} from '../../values/config-schema.ts'
import { defineSource, type SourceStream } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { applyMode, resolveStreamName, selectNamedStreams, type NamedStreams } from '../kit/select-stream.ts'
import { SINCE_SCHEMA } from '../kit/since.ts'

interface AirtableStreams extends NamedStreams {
  tracked(tableId: string, webhookId: string): SourceStream
}

const NAMED_STREAMS = selectNamedStreams('table', {
  followsChanges: false,
  supportsSelect: false,
  supportsSafetyWindow: false,
})

export default defineSource({
  name: 'airtable',
  title: 'Airtable',
  times: { since: true, range: true },
  config: requireOneOf(
    objectSchema(
      {
        base_id: TEXT_SCHEMA,
        token: SECRET_SCHEMA,
        connection: CONNECTION_SCHEMA,
        base_url: TEXT_SCHEMA,
        since: SINCE_SCHEMA,
      },
      ['base_id'],
    ),
    ['token'],
    ['connection'],
  ),
  async open({ base_id: baseId, token, connection, base_url: baseUrl, since }): Promise<AirtableStreams> {
    const { airtable } = await import('./source.ts')
    const source = airtable({ baseId, ...omitUndefined({ token, connection, baseUrl, since }) })
    return {
      stream: (name) => source.table(name),
      tracked: (name, webhook) => source.tracked(name, webhook),
      discover: source.discover,
    }
  },
  ...NAMED_STREAMS,
  streams: {
    ...NAMED_STREAMS.streams,
    options: objectSchema({
      table: TEXT_SCHEMA,
      webhook: {
        ...TEXT_SCHEMA,
        description: 'ach…: follow the payloads of this webhook. The table needs its id, tbl….',
      },
    }),
  },
  discover: (opened: AirtableStreams, context, declared) => NAMED_STREAMS.discover(opened, context, declared),
  stream({ tracked, ...opened }: AirtableStreams, { options: { webhook, ...options } = {}, ...declaration }) {
    return webhook === undefined
      ? NAMED_STREAMS.stream(opened, { ...declaration, options })
      : applyMode(tracked(resolveStreamName({ ...declaration, options }, 'table'), webhook), declaration)
  },
  template: {
    rank: 90,
    settings: { AIRTABLE_TOKEN: 'a personal access token; set the base and the table in worker.ts' },
    database: 'tasks',
  },
  advice: {
    rank: 70,
    facts: { changes: 'none', paging: 'token', http: 'other', size: 'small' },
    stream: "airtable({ baseId: 'app0000000000000', token: 'AIRTABLE_TOKEN' }).table('tbl0000000000000')",
    database: 'tasks',
  },
})
