import type { S3Client } from '@aws-sdk/client-s3'
import { SyncError, type ErrorCode } from '../../../contract/index.ts'
import { required } from '../../../values/required.ts'
import type { Storage, StoredFile } from './storage.ts'
import { importPackage } from '../../../values/import-package.ts'

/** A bucket. The AWS client finds region and credentials by its own defaults if they are not given. */
export interface LakeS3Options {
  readonly bucket: string
  /** The folder of the lake in the bucket, such as `lake/`. */
  readonly prefix?: string
  readonly region?: string
  /** A compatible storage, such as MinIO or R2. It must support conditional writes. */
  readonly endpoint?: string
  readonly forcePathStyle?: boolean
  readonly credentials?: {
    readonly accessKeyId: string
    readonly secretAccessKey: string
    readonly sessionToken?: string
  }
}

const CHECK_FILE = '_tidemark/conditional-writes'
const REMOVE_MAX = 1_000

/** A bucket. A file is created with `If-None-Match: *`: of two processes, only one succeeds. */
export class S3Storage implements Storage {
  readonly uri: string
  readonly #bucket: string
  readonly #prefix: string
  readonly #options: LakeS3Options
  #loaded: Promise<{ client: S3Client; sdk: S3Sdk }> | undefined
  #isChecked = false

  constructor(options: LakeS3Options) {
    const prefix = (options.prefix ?? '').replace(/^\/+|\/+$/g, '')
    this.#options = options
    this.#bucket = options.bucket
    this.#prefix = prefix === '' ? '' : `${prefix}/`
    this.uri = `s3://${options.bucket}${prefix === '' ? '' : `/${prefix}`}`
  }

  /** A server that ignores the condition would let two processes replace each other's commits. */
  async check(): Promise<void> {
    if (this.#isChecked) return
    const body = Buffer.from('Tidemark creates this object twice, to check that the second attempt is refused.\n')
    const isCreated = await this.create(CHECK_FILE, body)
    if (isCreated && (await this.create(CHECK_FILE, body)))
      throw new SyncError(
        'DESTINATION_INVALID',
        `${this.uri} ignores conditional writes (If-None-Match). A lake needs a storage that supports them.`,
      )
    this.#isChecked = true
  }

  read(path: string): Promise<Buffer | null> {
    return this.#get(path, undefined)
  }

  async readRange(path: string, start: number, end: number): Promise<Buffer> {
    if (end <= start) return Buffer.alloc(0)
    return required(await this.#get(path, `bytes=${start}-${end - 1}`), `${this.uri}/${path}`)
  }

  async write(path: string, bytes: Uint8Array): Promise<void> {
    await this.#send(path, ({ client, sdk }) =>
      client.send(new sdk.PutObjectCommand({ ...this.#target(path), Body: bytes })),
    )
  }

  async create(path: string, bytes: Uint8Array): Promise<boolean> {
    try {
      await this.#send(path, ({ client, sdk }) =>
        client.send(new sdk.PutObjectCommand({ ...this.#target(path), Body: bytes, IfNoneMatch: '*' })),
      )
      return true
    } catch (error) {
      if (statusOf(error) === 412) return false
      if (statusOf(error) === 501)
        throw new SyncError(
          'DESTINATION_INVALID',
          `${this.uri} does not support conditional writes (If-None-Match). A lake needs a storage that does.`,
          { cause: error },
        )
      throw error
    }
  }

  async list(folder: string): Promise<StoredFile[]> {
    const files: StoredFile[] = []
    let token: string | undefined
    do {
      const page = await this.#send(folder, ({ client, sdk }) =>
        client.send(
          new sdk.ListObjectsV2Command({
            Bucket: this.#bucket,
            Prefix: `${this.#prefix}${folder}/`,
            ContinuationToken: token,
          }),
        ),
      )
      for (const { Key, LastModified } of page.Contents ?? [])
        if (Key !== undefined)
          files.push({ path: Key.slice(this.#prefix.length), changedAtMs: LastModified?.getTime() ?? Infinity })
      token = page.NextContinuationToken
    } while (token !== undefined)
    return files
  }

  async remove(paths: readonly string[]): Promise<void> {
    for (let at = 0; at < paths.length; at += REMOVE_MAX) {
      const part = paths.slice(at, at + REMOVE_MAX)
      const { Errors: errors = [] } = await this.#send(part[0] ?? '', ({ client, sdk }) =>
        client.send(
          new sdk.DeleteObjectsCommand({
            Bucket: this.#bucket,
            Delete: { Objects: part.map((path) => ({ Key: `${this.#prefix}${path}` })), Quiet: true },
          }),
        ),
      )
      if (errors.length > 0)
        throw new SyncError(
          'DESTINATION_REFUSED',
          `${this.uri}: ${errors.length} objects could not be deleted (${errors[0]?.Code ?? 'unknown error'}).`,
        )
    }
  }

  async #get(path: string, range: string | undefined): Promise<Buffer | null> {
    try {
      const { Body } = await this.#send(path, ({ client, sdk }) =>
        client.send(new sdk.GetObjectCommand({ ...this.#target(path), Range: range })),
      )
      return Buffer.from(await required(Body, 'the response body').transformToByteArray())
    } catch (error) {
      if (statusOf(error) === 404 && nameOf(error) !== 'NoSuchBucket') return null
      throw error
    }
  }

  #target(path: string): { Bucket: string; Key: string } {
    return { Bucket: this.#bucket, Key: `${this.#prefix}${path}` }
  }

  async #send<T>(path: string, send: (loaded: { client: S3Client; sdk: S3Sdk }) => Promise<T>): Promise<T> {
    const loaded = await (this.#loaded ??= this.#load())
    try {
      return await send(loaded)
    } catch (error) {
      const status = statusOf(error)
      throw new SyncError(
        ERROR_CODES_BY_STATUS[status ?? 0] ?? 'DESTINATION_UNAVAILABLE',
        `${this.uri}/${path} ${status === undefined ? 'did not answer' : `answered ${status}`} (${nameOf(error)}).`,
        { cause: error },
      )
    }
  }

  async #load(): Promise<{ client: S3Client; sdk: S3Sdk }> {
    const { region, endpoint, forcePathStyle, credentials } = this.#options
    const sdk = await loadSdk()
    const client = new sdk.S3Client({
      ...(region !== undefined && { region }),
      ...(endpoint !== undefined && { endpoint }),
      ...(forcePathStyle !== undefined && { forcePathStyle }),
      ...(credentials !== undefined && { credentials }),
      // Compatible storages do not know the newer checksums.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    })
    return { client, sdk }
  }
}

type S3Sdk = typeof import('@aws-sdk/client-s3')

/** Optional dependency, needed only for S3. */
function loadSdk(): Promise<S3Sdk> {
  return importPackage('@aws-sdk/client-s3', 'Writing to S3 needs', () => import('@aws-sdk/client-s3'))
}

const ERROR_CODES_BY_STATUS: Record<number, ErrorCode> = {
  400: 'DESTINATION_REFUSED',
  401: 'DESTINATION_REFUSED',
  403: 'DESTINATION_REFUSED',
  404: 'DESTINATION_REFUSED',
  507: 'DESTINATION_FULL',
}

/** The status of the answer, also of an error that `#send` has wrapped. */
function statusOf(error: unknown): number | undefined {
  const { cause, $metadata } = error as { cause?: unknown; $metadata?: { httpStatusCode?: number } }
  return $metadata?.httpStatusCode ?? (cause === undefined ? undefined : statusOf(cause))
}

function nameOf(error: unknown): string {
  const { cause, name } = error as { cause?: unknown; name?: string }
  return error instanceof SyncError && cause !== undefined ? nameOf(cause) : (name ?? 'unknown error')
}
