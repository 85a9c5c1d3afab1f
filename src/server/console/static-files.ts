import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { HttpError } from '../http-error.ts'

/** No external resources, no inline scripts, no framing. */
const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
const COMPRESS_MIN_BYTES = 1_024

interface StaticFile {
  readonly mediaType: string
  readonly bytes: Buffer
  readonly compressed: Buffer | null
  /** The name contains a content hash, so the file can be cached forever. */
  readonly isHashed: boolean
}

/**
 * Serves the built console without authentication; it contains no data. Every path that is not a file is a page of the
 * single-page app.
 */
export function serveConsole(app: FastifyInstance): void {
  let files: ReadonlyMap<string, StaticFile> | null = null
  const handler = (path: string, reply: FastifyReply, acceptsBrotli: boolean): FastifyReply => {
    files ??= readFiles(findConsoleFolder())
    const file = files.get(path) ?? (path.startsWith('assets/') ? undefined : files.get('index.html'))
    if (file === undefined)
      throw new HttpError(
        'NOT_FOUND',
        files.size === 0 ? 'The console is not built. Run `npm run build`.' : 'File not found.',
      )
    const compressed = acceptsBrotli ? file.compressed : null
    return reply
      .headers({
        ...SECURITY_HEADERS,
        vary: 'accept-encoding',
        'cache-control': file.isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
        ...(compressed !== null && { 'content-encoding': 'br' }),
      })
      .type(file.mediaType)
      .send(compressed ?? file.bytes)
  }
  app.get('/', (_request, reply) => void reply.redirect('/console/'))
  app.get('/console', (_request, reply) => void reply.redirect('/console/'))
  app.get('/console/*', (request, reply) => {
    const path = (request.params as { '*': string })['*']
    if (path.startsWith('api/')) throw new HttpError('NOT_FOUND', 'Not found.')
    return handler(path, reply, /\bbr\b/.test(request.headers['accept-encoding'] ?? ''))
  })
}

/** Next to the compiled code, or in dist/ when running from source. */
function findConsoleFolder(): string {
  return (
    ['../../console/', '../../../dist/console/']
      .map((path) => fileURLToPath(new URL(path, import.meta.url)))
      .find((folder) => existsSync(join(folder, 'index.html'))) ?? ''
  )
}

/** Reads all files at once: they are few, and no request path reaches the file system. */
function readFiles(folder: string): ReadonlyMap<string, StaticFile> {
  if (folder === '') return new Map()
  const found = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  return new Map(
    found.map((path) => {
      const name = relative(folder, path).split(sep).join('/')
      const bytes = readFileSync(path)
      const compressed =
        bytes.length < COMPRESS_MIN_BYTES
          ? null
          : brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } })
      return [
        name,
        {
          mediaType: MEDIA_TYPES[extname(name)] ?? 'application/octet-stream',
          bytes,
          compressed,
          isHashed: name.startsWith('assets/'),
        },
      ]
    }),
  )
}
