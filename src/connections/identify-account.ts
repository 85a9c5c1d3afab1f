import { SyncError, type JsonObject, type SyncContext } from '../contract/index.ts'
import { classifyGraphqlResponse, isObject } from '../sources/kit/classify-response.ts'
import { classifyStatus } from '../sources/kit/http-status.ts'
import { Origin } from '../sources/kit/origin.ts'
import { readJson, sendRequest } from '../sources/kit/send-request.ts'
import { readPath } from '../sources/kit/token-endpoint.ts'
import type { PlainRequest } from './authenticate-request.ts'
import type { AccountRequest, Provider } from './define-provider.ts'
import { fillUrl, type TemplateValues } from './fill-template.ts'

/** The account as the vendor states it. */
export interface VendorAccount {
  readonly id: string
  readonly label: string
}

const ACCOUNT_BODY_LIMITS = { bodyBytesMax: 1_048_576, depthMax: 32, bodyDeadlineMs: 30_000 }

/**
 * Asks the vendor whose account the credentials belong to. It is also the test of a connection: AUTH_REJECTED if the
 * vendor refuses the credentials.
 */
export async function identifyAccount(
  { title, account, inputs = {} }: Pick<Provider, 'title' | 'account' | 'inputs'>,
  authenticate: (request: PlainRequest) => PlainRequest,
  values: TemplateValues,
  context: SyncContext,
): Promise<VendorAccount> {
  const { method = 'GET' } = account
  const url = fillUrl(account.url, values)
  const label = `${method} ${url.pathname}`
  const request = authenticate({ url, headers: headersOf(account), body: account.body ?? null })
  const response = await sendRequest({ method, label, ...request }, new Origin(url.origin), context)
  const code = classifyStatus(response.status, response.headers)
  if (code !== null) {
    await response.body?.cancel().catch(() => {})
    throw new SyncError(code, `${title} answered ${response.status} to ${label}.`)
  }
  const body = await readJson(response, `${label} answered ${response.status}`, ACCOUNT_BODY_LIMITS, context)
  const failure = classifyGraphqlResponse({ status: response.status, headers: response.headers, body })
  if (failure !== null) throw new SyncError(failure.code, `${title} answered ${label} with ${failure.reason}.`)
  // Kraken answers 200 with a list of errors.
  if (isObject(body) && Array.isArray(body['error']) && body['error'].length > 0)
    throw new SyncError('AUTH_REJECTED', `${title} rejected the credentials in ${label}.`)
  const id = textAt(body as JsonObject, account.id)
  if (id === null)
    throw new SyncError('SOURCE_INVALID', `${title} answered ${label} without the account at ${account.id}.`)
  // An id of a self-hosted or instance-bound vendor is unique only within its host.
  const host = Object.entries(inputs).find(
    ([name, input]) => input.hostSuffixes !== undefined && usesHost(account, name),
  )
  return {
    id: host === undefined ? id : `${values.checked[host[0]] ?? url.host}/${id}`,
    label: textAt(body as JsonObject, account.label) ?? id,
  }
}

function usesHost({ url }: AccountRequest, name: string): boolean {
  return url.includes(`{${name}}`)
}

function headersOf({ body, headers = {} }: AccountRequest): Record<string, string> {
  return {
    accept: 'application/json',
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...headers,
  }
}

/** Short, because it is stored and shown. */
function textAt(body: JsonObject, path: string): string | null {
  const found = readPath(body, path)
  if (typeof found === 'number' && Number.isSafeInteger(found)) return String(found)
  if (typeof found === 'bigint') return String(found)
  return typeof found === 'string' && found !== ''
    ? found.replaceAll(/[\u0000-\u001f\u007f]/g, ' ').slice(0, 200)
    : null
}
