import type { FastifyReply } from 'fastify'
import type { ConnectFlow, ConnectView } from '../../connections/connect/connect-flow.ts'
import { HttpError } from '../http-error.ts'
import { createRequestLog, pathParam, sendData, type Route, type RouteRequest } from '../route.ts'
import { objectSchema } from '../schemas.ts'
import { CONNECT_SCRIPT, DONE_SCRIPT } from './scripts.ts'
import { renderConnectPage, renderErrorPage } from './render-page.ts'
import { PAGE_STYLE } from './style.ts'

const TOKEN = { type: 'string', minLength: 1, maxLength: 64, description: 'The token of the link.' }
const NAME = { type: 'string', minLength: 1, maxLength: 63 }
const FORM_BYTES_MAX = 65_536
const HTML = 'text/html; charset=utf-8'

const PAGE_ROUTE = {
  access: { kind: 'public' },
  mediaType: 'text/html',
  response: { type: 'string' },
  // A browser sends a form, and vendors add parameters of their own.
  rawBytesMax: FORM_BYTES_MAX,
} as const

/** The pages of the connect flow. They are authorized by the link and the cookie of its browser, not by a key. */
export const connectRoutes: readonly Route[] = [
  {
    ...PAGE_ROUTE,
    method: 'GET',
    path: '/connect/:token',
    id: 'openConnectPage',
    params: objectSchema({ token: TOKEN }),
    summary: 'The page of a connect link, for the browser that has its cookie.',
    handle: (routeRequest) =>
      respond(routeRequest, (flow) =>
        flow.open(pathParam(routeRequest, 'token'), cookieReader(routeRequest), routeRequest.query['popup'] === '1'),
      ),
  },
  {
    ...PAGE_ROUTE,
    method: 'POST',
    path: '/connect/:token',
    id: 'submitConnectPage',
    params: objectSchema({ token: TOKEN }),
    summary: 'The form of the page: continues to the vendor, or connects with the entered credentials.',
    handle: (routeRequest) =>
      respond(routeRequest, async (flow, signal) => {
        if (!isOwnForm(routeRequest, flow.origin)) return { kind: 'refused', reason: 'form-token' }
        const { body } = routeRequest.request
        const fields = Object.fromEntries(new URLSearchParams(Buffer.isBuffer(body) ? body.toString('utf8') : ''))
        return flow.submit(pathParam(routeRequest, 'token'), cookieReader(routeRequest), fields, signal)
      }),
  },
  {
    ...PAGE_ROUTE,
    method: 'GET',
    path: '/connect/callback/:provider',
    id: 'receiveConnectCallback',
    params: objectSchema({ provider: NAME }),
    summary: 'The redirect URI of a provider. Register it at the vendor.',
    handle: (routeRequest) =>
      respond(routeRequest, (flow, signal) => {
        // A repeated parameter has no single value, and one of the two was added by a third party.
        const query = Object.fromEntries(
          Object.entries(routeRequest.query as Record<string, unknown>).flatMap(([name, value]) =>
            typeof value === 'string' ? [[name, value]] : [],
          ),
        )
        return flow.callback(pathParam(routeRequest, 'provider'), query, cookieReader(routeRequest), signal)
      }),
  },
  {
    method: 'GET',
    path: '/connect/result/:token',
    id: 'readConnectResult',
    access: { kind: 'public' },
    params: objectSchema({ token: TOKEN }),
    response: objectSchema({
      data: objectSchema({
        status: { type: 'string', enum: ['open', 'authorizing', 'finishing', 'connected', 'expired'] },
        connection: { type: ['string', 'null'] },
        provider: { type: ['string', 'null'] },
      }),
    }),
    summary: 'The state of a connect link, for the browser that has its cookie.',
    handle: async (routeRequest) => {
      const flow = requireFlow(routeRequest)
      return sendData(
        routeRequest.reply,
        await flow.result(pathParam(routeRequest, 'token'), cookieReader(routeRequest)),
      )
    },
  },
  ...(
    [
      ['connect.js', 'text/javascript', CONNECT_SCRIPT, 'The script that opens a connect link in a pop-up.'],
      ['done.js', 'text/javascript', DONE_SCRIPT, 'The script of the last page, which reports to the opener.'],
      ['page.css', 'text/css', PAGE_STYLE, 'The style of the connect page.'],
    ] as const
  ).map(([file, mediaType, text, summary]): Route => ({
    method: 'GET',
    path: `/connect/${file}`,
    id: `readConnect${file === 'page.css' ? 'Style' : file === 'done.js' ? 'DoneScript' : 'Script'}`,
    access: { kind: 'public' },
    response: { type: 'string' },
    mediaType,
    summary,
    handle: ({ reply }) =>
      void reply
        .type(`${mediaType}; charset=utf-8`)
        .headers({ 'cache-control': 'public, max-age=300', 'cross-origin-resource-policy': 'cross-origin' })
        .send(text),
  })),
]

/** A page for every outcome: a user reads it, not a program. */
async function respond(
  routeRequest: RouteRequest,
  decide: (flow: ConnectFlow, signal: AbortSignal) => Promise<ConnectView>,
): Promise<unknown> {
  const { reply, context } = routeRequest
  const flow = requireFlow(routeRequest)
  let view: ConnectView
  try {
    view = await decide(flow, context.stopping)
  } catch (error) {
    createRequestLog(routeRequest).error('the connect flow failed', {
      reason: error instanceof Error ? error.message : String(error),
    })
    return reply.code(500).headers(headersFor([])).type(HTML).send(renderErrorPage(flow.path))
  }
  if (view.kind === 'redirect') return reply.headers(headersFor([])).redirect(view.url, 303)
  // A form that is answered with a form was not accepted.
  const status = view.kind === 'refused' ? 403 : routeRequest.request.method === 'POST' ? 422 : 200
  return sendPage(reply.code(status), view, flow.path)
}

function sendPage(reply: FastifyReply, view: Exclude<ConnectView, { kind: 'redirect' }>, path: string): FastifyReply {
  return reply
    .headers(headersFor(view.kind === 'form' ? view.formOrigins : []))
    .type(HTML)
    .send(renderConnectPage(view, path))
}

/**
 * No inline scripts, no other resources, no framing. A policy for forms also applies to the redirect that answers one, so
 * it names the vendor. The referrer stays within the origin, because the URL is a secret; with `no-referrer` a browser
 * would also send `Origin: null` with the form.
 */
function headersFor(formOrigins: readonly string[]): Record<string, string> {
  return {
    'content-security-policy': `default-src 'none'; script-src 'self'; style-src 'self'; form-action ${["'self'", ...formOrigins].join(' ')}; base-uri 'none'; frame-ancestors 'none'`,
    'referrer-policy': 'same-origin',
    'x-frame-options': 'DENY',
  }
}

/** A browser states the origin of a form; a form of another site is refused before its token is compared. */
function isOwnForm({ request }: RouteRequest, own: string): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers
  return (origin === undefined || origin === own) && (site === undefined || site === 'same-origin')
}

function cookieReader({ request }: RouteRequest): (name: string) => string | undefined {
  const pairs = (request.headers.cookie ?? '').split(';').map((pair) => pair.trim())
  return (name) => pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

function requireFlow({ context }: RouteRequest): ConnectFlow {
  if (context.connect === null) throw new HttpError('NOT_FOUND', 'The connect flow is not configured on this server.')
  return context.connect
}
