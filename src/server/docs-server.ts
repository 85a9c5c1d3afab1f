import fastify from 'fastify'
import { SyncError } from '../contract/index.ts'
import { HttpError } from './http-error.ts'
import { DOCS_FOLDER, serveStaticFolder } from './static-folder.ts'

export interface DocsServer {
  /** The address of the first page. */
  readonly url: string
  close(): Promise<void>
}

/** Serves the documentation on loopback, without a store. Without a port, 4681 or any other that is free. */
export async function startDocsServer(port: number | undefined): Promise<DocsServer> {
  try {
    return await listen(port ?? DEFAULT_PORT)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE' && port === undefined) return await listen(0)
    const address = `127.0.0.1:${port ?? DEFAULT_PORT}`
    const message = `The documentation cannot be served on ${address} (${code ?? 'unknown error'}).`
    throw new SyncError('PORT_TAKEN', message, { cause: error })
  }
}

const DEFAULT_PORT = 4_681

async function listen(port: number): Promise<DocsServer> {
  const app = fastify({ forceCloseConnections: true })
  app.setErrorHandler((error, _request, reply) => {
    const known = error instanceof HttpError ? error : new HttpError('INTERNAL_ERROR', 'Internal error.')
    void reply.code(known.status).type('text/plain').send(known.message)
  })
  app.get('/', (_request, reply) => void reply.redirect(`${DOCS_FOLDER.path}/`))
  serveStaticFolder(app, DOCS_FOLDER)
  const origin = await app.listen({ host: '127.0.0.1', port })
  return { url: `${origin}${DOCS_FOLDER.path}/`, close: () => app.close() }
}
