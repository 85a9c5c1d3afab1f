import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { HttpError } from '../http-error.ts'

/** Nothing from elsewhere, nothing written into the page, and no page around it. */
const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
}

const MEDIA_TYPES: Readonly<Record<string, string>> = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml' }
const COMPRESS_MIN_BYTES = 1_024

interface StaticFile {
  readonly mediaType: string
  readonly bytes: Buffer
  readonly compressed: Buffer | null
  /** Its name tells its content, so that it may be kept for ever. */
  readonly isHashed: boolean
}

/** The console as it was built, for everybody: it knows nothing until it asks. Every address below it that is no file is a page of it. */
export function serveConsole(app: FastifyInstance): void {
  let files: ReadonlyMap<string, StaticFile> | null = null
  const handler = (path: string, reply: FastifyReply, wantsPacked: boolean): FastifyReply => {
    files ??= readFiles(findConsoleFolder())
    const file = files.get(path) ?? (path.startsWith('assets/') ? undefined : files.get('index.html'))
    if (file === undefined) throw new HttpError('NOT_FOUND', files.size === 0 ? 'The console was not built. `npm run build` does it.' : 'There is no such file.')
    const packed = wantsPacked ? file.compressed : null
    return reply.headers({ ...SECURITY_HEADERS, vary: 'accept-encoding', 'cache-control': file.isHashed ? 'public, max-age=31536000, immutable' : 'no-cache', ...(packed !== null && { 'content-encoding': 'br' }) }).type(file.mediaType).send(packed ?? file.bytes)
  }
  app.get('/', (_request, reply) => void reply.redirect('/console/'))
  app.get('/console', (_request, reply) => void reply.redirect('/console/'))
  app.get('/console/*', (request, reply) => {
    const path = (request.params as { '*': string })['*']
    if (path.startsWith('api/')) throw new HttpError('NOT_FOUND', 'There is nothing at this address.')
    return handler(path, reply, /\bbr\b/.test(request.headers['accept-encoding'] ?? ''))
  })
}

/** Beside the compiled code; while that is run from its source, where the build puts it. */
function findConsoleFolder(): string {
  return ['../../console/', '../../../dist/console/'].map((path) => fileURLToPath(new URL(path, import.meta.url))).find((folder) => existsSync(join(folder, 'index.html'))) ?? ''
}

/** All at once: there are a handful, and nothing that is asked for becomes part of a path. */
function readFiles(folder: string): ReadonlyMap<string, StaticFile> {
  if (folder === '') return new Map()
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return new Map(found.map((path) => {
    const name = relative(folder, path).split(sep).join('/')
    const bytes = readFileSync(path)
    const packed = bytes.length < COMPRESS_MIN_BYTES ? null : brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } })
    return [name, { mediaType: MEDIA_TYPES[extname(name)] ?? 'application/octet-stream', bytes, compressed: packed, isHashed: name.startsWith('assets/') }]
  }))
}
