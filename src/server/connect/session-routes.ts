import { isSyncError } from '../../contract/index.ts'
import { HttpError } from '../http-error.ts'
import { sendData, type Route } from '../route.ts'
import { objectSchema } from '../schemas.ts'

const NAME = { type: 'string', minLength: 1, maxLength: 63 }

/** Creates connect links for programs that do not embed Tidemark. */
export const connectSessionRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/api/connect-sessions',
    id: 'createConnectSession',
    access: { kind: 'control', scope: 'connections:write' },
    body: {
      ...objectSchema(
        {
          provider: { ...NAME, description: 'A provider of this server.' },
          connection: {
            ...NAME,
            description: 'Default: the name of the provider. An existing one is authorized again.',
          },
          returnTo: { type: 'string', maxLength: 2_048, description: 'A URL that this server allows.' },
          method: { type: 'string', enum: ['oauth', 'form'] },
          scopes: { type: 'array', items: { type: 'string', maxLength: 200 }, maxItems: 100 },
          allowAccountChange: { type: 'boolean', description: 'Default: false.' },
        },
        ['provider'],
      ),
      additionalProperties: false,
    },
    response: objectSchema({
      data: objectSchema({
        url: { type: 'string', description: 'The link for your user.' },
        cookie: {
          type: 'string',
          description: 'A Set-Cookie header for your signed-in user. The link works only in the browser that has it.',
        },
        expiresAt: { type: 'string' },
      }),
    }),
    summary: 'Creates a link with which a user connects an account of the tenant of the key.',
    handle: async ({ request, reply, context, caller }) => {
      const { connect } = context
      if (connect === null) throw new HttpError('NOT_FOUND', 'The connect flow is not configured on this server.')
      const { connection, ...options } = request.body as {
        provider: string
        connection?: string
        returnTo?: string
        method?: 'oauth' | 'form'
        scopes?: string[]
        allowAccountChange?: boolean
      }
      try {
        const link = await connect.createSession({
          ...options,
          tenant: caller.store.tenant,
          ...(connection !== undefined && { name: connection }),
        })
        return sendData(reply, link)
      } catch (error) {
        if (isSyncError(error) && error.code === 'CONNECTION_INVALID')
          throw new HttpError('INVALID_REQUEST', error.message, { details: { reason: 'parameter_invalid' } })
        throw error
      }
    },
  },
]
