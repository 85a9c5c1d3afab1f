import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { HttpError } from './http-error.ts'

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
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
}
const COMPRESS_MIN_BYTES = 1_024
const COMPRESSED_TYPES = new Set(['.html', '.js', '.css', '.json', '.svg'])

interface StaticFile {
  readonly mediaType: string
  readonly bytes: Buffer
  /** Brotli, computed for the first request; null if it would save nothing. */
  compressed(): Buffer | null
}

export interface StaticFolderOptions {
  /** The path below which the files are served, such as `/console`. */
  readonly path: string
  /** The folder in dist/. */
  readonly folder: string
  /** The file for every path that is no file. Without it, such a path is not found. */
  readonly fallback?: string
  /** The name of the content at the start of an error. */
  readonly title: string
  /** Below this folder, names contain a hash of the content, so the files can be cached forever. */
  readonly hashed?: string
}

/** A single-page app: every path that is not a file is one of its pages. */
export const CONSOLE_FOLDER: StaticFolderOptions = {
  path: '/console',
  folder: 'console',
  title: 'The console',
  fallback: 'index.html',
  hashed: 'assets/',
}

/** The documentation of this version. */
export const DOCS_FOLDER: StaticFolderOptions = { path: '/docs', folder: 'docs', title: 'The documentation' }

/** Serves a folder of the built package without authentication; it contains no data. */
export function serveStaticFolder(app: FastifyInstance, options: StaticFolderOptions): void {
  const { path, folder, fallback, title, hashed } = options
  let files: ReadonlyMap<string, StaticFile> | null = null
  const send = (name: string, reply: FastifyReply, acceptsBrotli: boolean): FastifyReply => {
    files ??= readFiles(findBuiltFolder(folder))
    const isHashed = hashed !== undefined && name.startsWith(hashed)
    const file = files.get(name) ?? (isHashed || fallback === undefined ? undefined : files.get(fallback))
    if (file === undefined)
      throw new HttpError(
        'NOT_FOUND',
        files.size === 0 ? `${title} is not built. Run \`npm run build\`.` : 'File not found.',
      )
    const compressed = acceptsBrotli ? file.compressed() : null
    return reply
      .headers({
        ...SECURITY_HEADERS,
        vary: 'accept-encoding',
        'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
        ...(compressed !== null && { 'content-encoding': 'br' }),
      })
      .type(file.mediaType)
      .send(compressed ?? file.bytes)
  }
  app.get(path, (_request, reply) => void reply.redirect(`${path}/`))
  app.get(`${path}/*`, (request, reply) => {
    const name = (request.params as { '*': string })['*']
    if (name.startsWith('api/') && fallback !== undefined) throw new HttpError('NOT_FOUND', 'Not found.')
    return send(name === '' ? 'index.html' : name, reply, /\bbr\b/.test(request.headers['accept-encoding'] ?? ''))
  })
}

/** Beside the compiled code, or in dist/ when running from source; '' if it is not built. */
export function findBuiltFolder(name: string): string {
  return (
    [`../${name}/`, `../../dist/${name}/`]
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
  return new Map(found.map((path) => [relative(folder, path).split(sep).join('/'), readStaticFile(path)]))
}

function readStaticFile(path: string): StaticFile {
  const bytes = readFileSync(path)
  const extension = extname(path)
  const isCompressed = bytes.length >= COMPRESS_MIN_BYTES && COMPRESSED_TYPES.has(extension)
  let compressed: Buffer | null = null
  return {
    mediaType: MEDIA_TYPES[extension] ?? 'application/octet-stream',
    bytes,
    compressed: () =>
      isCompressed
        ? (compressed ??= brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }))
        : null,
  }
}
