import { createOAuth, OAUTH_SCHEMA } from '../kit/config-auth.ts'
import {
  CONNECTION_SCHEMA,
  objectSchema,
  requireOneOf,
  SECRET_SCHEMA,
  TEXT_SCHEMA,
} from '../../values/config-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { SINCE_SCHEMA } from '../kit/since.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { selectNamedStreams, type NamedStreams } from '../kit/select-stream.ts'

export default defineSource({
  name: 'salesforce',
  title: 'Salesforce',
  times: { since: true, range: true },
  packages: ['csv-parse', 'csv-parse/sync'],
  config: requireOneOf(
    objectSchema({
      instance_url: TEXT_SCHEMA,
      access_token: SECRET_SCHEMA,
      oauth: OAUTH_SCHEMA,
      connection: CONNECTION_SCHEMA,
      api_version: TEXT_SCHEMA,
      bulk: { enum: ['auto', true, false] },
      since: SINCE_SCHEMA,
    }),
    ['instance_url', 'access_token'],
    ['instance_url', 'oauth'],
    ['connection'],
  ),
  async open(
    { instance_url: instanceUrl, access_token: accessToken, oauth, connection, api_version: apiVersion, bulk, since },
    { tokens },
  ): Promise<NamedStreams> {
    const { salesforce } = await import('./source.ts')
    const auth = await createOAuth(oauth, tokens)
    const source = salesforce({
      ...omitUndefined({ instanceUrl, accessToken, connection, apiVersion, bulk, since }),
      ...auth,
    })
    return {
      stream: (name, { select, safety_window: safetyWindow }) =>
        source.object(name, omitUndefined({ fields: select, safetyWindow })),
      discover: source.discover,
    }
  },
  ...selectNamedStreams('object', { followsChanges: true, supportsSelect: true, supportsSafetyWindow: true }),
  template: {
    rank: 40,
    settings: { SALESFORCE_TOKEN: 'an access token; set the org URL in worker.ts' },
    database: 'accounts',
  },
  advice: {
    rank: 10,
    // Deleted rows stay in the recycle bin, where the delta sees their flag.
    facts: { changes: 'timestamp', deletes: 'reported', paging: 'time', ties: 'yes', http: 'other', lagSeconds: 15 },
    stream:
      "salesforce({ instanceUrl: 'https://example.my.salesforce.com', accessToken: 'SALESFORCE_TOKEN' }).object('Account')",
    database: 'accounts',
  },
})
