import { createOAuth, OAUTH_SCHEMA } from '../kit/config-auth.ts'
import {
  CONNECTION_SCHEMA,
  objectSchema,
  requireOneOf,
  SECRET_SCHEMA,
  TEXT_SCHEMA,
} from '../../values/config-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { SINCE_SCHEMA } from '../kit/since.ts'
import { selectNamedStreams, type NamedStreams } from '../kit/select-stream.ts'

export default defineSource({
  name: 'servicenow',
  title: 'ServiceNow',
  times: { since: true, range: true },
  config: requireOneOf(
    objectSchema({
      instance_url: TEXT_SCHEMA,
      user: SECRET_SCHEMA,
      password: SECRET_SCHEMA,
      oauth: OAUTH_SCHEMA,
      connection: CONNECTION_SCHEMA,
      since: SINCE_SCHEMA,
    }),
    ['instance_url', 'user', 'password'],
    ['instance_url', 'oauth'],
    ['connection'],
  ),
  async open(
    { instance_url: instanceUrl, user, password, oauth, connection, since },
    { tokens },
  ): Promise<NamedStreams> {
    const { servicenow } = await import('./source.ts')
    const auth = await createOAuth(oauth, tokens)
    const source = servicenow({ ...omitUndefined({ instanceUrl, user, password, connection, since }), ...auth })
    return {
      stream: (name, { select, safety_window: safetyWindow }) =>
        source.table(name, omitUndefined({ fields: select, safetyWindow })),
      discover: source.discover,
    }
  },
  ...selectNamedStreams('table', { followsChanges: true, supportsSelect: true, supportsSafetyWindow: true }),
  template: {
    rank: 50,
    settings: {
      SERVICENOW_USER: 'a user with read access to the table and sys_audit',
      SERVICENOW_PASSWORD: 'the password; set the instance URL in worker.ts',
    },
    database: 'incidents',
  },
  advice: {
    rank: 50,
    facts: { changes: 'timestamp', deletes: 'elsewhere', paging: 'time', ties: 'yes', http: 'other', lagSeconds: 15 },
    stream:
      "servicenow({ instanceUrl: 'https://example.service-now.com', user: 'SERVICENOW_USER', password: 'SERVICENOW_PASSWORD' }).table('incident')",
    database: 'incidents',
  },
})
