import { defaultKind } from '../../connections/build-credentials.ts'
import type { ConnectLink } from '../../connections/connect/connect-flow.ts'
import { listSettings } from '../../connections/check-settings.ts'
import type { Provider, ProviderInput } from '../../connections/define-provider.ts'
import { PROVIDERS } from '../../connections/registry.ts'
import { isSyncError } from '../../contract/index.ts'
import { HttpError } from '../http-error.ts'
import { pathParam, sendData, type Route, type RouteRequest, type ServerContext } from '../route.ts'
import { objectSchema } from '../schemas.ts'
import type { ProviderDocument, ProviderField } from './documents.ts'

const TEXT = { type: 'string' }
const FORM = { type: ['object', 'null'], additionalProperties: true }

/** Routes for the page of connections, beyond `/api/connections`. */
export const consoleConnectionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/console/api/providers',
    id: 'consoleProviders',
    access: { kind: 'control', scope: 'connections:read' },
    response: objectSchema({
      data: {
        type: 'array',
        items: objectSchema({
          name: TEXT,
          title: TEXT,
          documentation: TEXT,
          canAuthorize: { type: 'boolean' },
          form: FORM,
        }),
      },
    }),
    summary: 'The providers with the fields of their forms.',
    handle: ({ reply, context }) => sendData(reply, listProviders(context)),
  },
  {
    method: 'POST',
    path: '/console/api/connections/:connection/authorize',
    id: 'consoleAuthorizeConnection',
    access: { kind: 'control', scope: 'connections:write' },
    params: objectSchema({
      connection: { ...TEXT, minLength: 1, maxLength: 63, description: 'Name of the connection.' },
    }),
    response: objectSchema({
      data: objectSchema({ url: { type: ['string', 'null'] }, why: { type: ['string', 'null'] } }),
    }),
    summary: 'Creates a connect link for this browser, to authorize a connection again; or returns why there is none.',
    handle: async (routeRequest) => {
      const { link, why } = await createLink(routeRequest)
      if (link !== null) void routeRequest.reply.header('set-cookie', link.cookie)
      return sendData(routeRequest.reply, { url: link?.url ?? null, why })
    },
  },
]

function listProviders({ connect }: ServerContext): ProviderDocument[] {
  const connectable = new Set(connect?.providers)
  return Object.values<Provider>(PROVIDERS).map(({ name, title, documentation, form, inputs = {} }) => {
    const kind = defaultKind(name)
    const isSecret = ([, input]: readonly [string, ProviderInput]): boolean => input.isSecret === true
    const settings = Object.entries(inputs).filter((entry) => !isSecret(entry))
    const others = listSettings(name).filter((setting) => !settings.some(([known]) => known === setting))
    return {
      name,
      title,
      documentation,
      canAuthorize: connectable.has(name),
      form:
        form === undefined
          ? null
          : {
              kind,
              steps: form.steps,
              secrets: [...Object.entries(form.fields), ...Object.entries(inputs).filter(isSecret)].map(
                ([field, input]) => toField(field, input, true),
              ),
              settings: [
                ...settings.map(([setting, input]) => toField(setting, input, input.default === undefined)),
                ...others.map((setting) => toField(setting, { label: setting }, false)),
              ],
            },
    }
  })
}

function toField(
  name: string,
  { label, hint, example, isSecret = false }: ProviderInput,
  isRequired: boolean,
): ProviderField {
  return { name, label, hint: hint ?? null, example: example ?? null, isSecret, isRequired }
}

/** The cookie binds the link to the browser that asked for it, so it has to be at the host of the connect flow. */
async function createLink(
  routeRequest: RouteRequest,
): Promise<{ readonly link: ConnectLink | null; readonly why: string | null }> {
  const { caller, context, request } = routeRequest
  const { connect } = context
  const name = pathParam(routeRequest, 'connection')
  const found = await caller.store.connection(name)
  if (found === null) throw new HttpError('NOT_FOUND', 'Connection not found.')
  if (connect === null) return { link: null, why: 'The connect flow is not configured on this server.' }
  if (request.headers.host !== new URL(connect.origin).host)
    return { link: null, why: `Open the console at ${connect.origin}: the link works there alone.` }
  try {
    const link = await connect.createSession({ tenant: caller.store.tenant, provider: found.provider, name })
    return { link, why: null }
  } catch (error) {
    if (isSyncError(error) && error.code === 'CONNECTION_INVALID') return { link: null, why: error.message }
    throw error
  }
}
