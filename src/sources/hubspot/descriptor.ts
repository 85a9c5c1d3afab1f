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
  name: 'hubspot',
  title: 'HubSpot',
  times: { since: true, range: true },
  config: requireOneOf(
    objectSchema({
      access_token: SECRET_SCHEMA,
      oauth: OAUTH_SCHEMA,
      connection: CONNECTION_SCHEMA,
      base_url: TEXT_SCHEMA,
      since: SINCE_SCHEMA,
    }),
    ['access_token'],
    ['oauth'],
    ['connection'],
  ),
  async open(
    { access_token: accessToken, oauth, connection, base_url: baseUrl, since },
    { tokens },
  ): Promise<NamedStreams> {
    const [{ hubspot }, { parseAssociationName }] = await Promise.all([
      import('./source.ts'),
      import('./object-types.ts'),
    ])
    const options = {
      ...(await createOAuth(oauth, tokens)),
      ...omitUndefined({ accessToken, connection, baseUrl, since }),
    }
    return {
      stream: (name, { select }) => {
        const pair = parseAssociationName(name)
        if (pair !== null) return hubspot(options).associations(...pair)
        return hubspot({ ...options, ...(select !== undefined && { properties: { [name]: select } }) }).object(name)
      },
      discover: (context) => hubspot(options).discover(context),
    }
  },
  ...selectNamedStreams('object', { followsChanges: true, supportsSelect: true, supportsSafetyWindow: false }),
  template: { rank: 30, settings: { HUBSPOT_TOKEN: 'the access token of a private app' }, database: 'contacts' },
  advice: {
    rank: 30,
    facts: { changes: 'timestamp', deletes: 'elsewhere', paging: 'token', order: 'one-field', lagSeconds: 10 },
    stream: "hubspot({ accessToken: 'HUBSPOT_TOKEN' }).contacts",
    database: 'contacts',
    // The archive has no order and no time filter, so all of it is read, at most every five minutes.
    deletesBy: 'archive',
  },
})
