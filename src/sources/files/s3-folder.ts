import { hash } from 'node:crypto'
import type { S3Client } from '@aws-sdk/client-s3'
import { SyncError, type ErrorCode } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import type { FileVersion, Folder, ListedFile, OpenFile } from './folder.ts'
import { importPackage } from '../../values/import-package.ts'

/** The bucket and client options of `s3Folder`. */
export interface S3Options {
  readonly bucket: string
  /** Reads only keys with this prefix, such as `sales/orders/`; paths omit it. */
  readonly prefix?: string
  /** Options of the AWS client, which finds region and credentials by its own defaults if they are not given. */
  readonly client?: {
    readonly region?: string
    readonly endpoint?: string
    readonly forcePathStyle?: boolean
    readonly credentials?: {
      readonly accessKeyId: string
      readonly secretAccessKey: string
      readonly sessionToken?: string
    }
    readonly [option: string]: unknown
  }
}

/** An S3 bucket, or a compatible storage: `files({ folder: s3Folder({ bucket: 'sales', prefix: 'orders/' }) })`. */
export function s3Folder(options: S3Options): Folder {
  return new S3Folder(options)
}

class S3Folder implements Folder {
  readonly name: string
  readonly #options: S3Options
  #loaded: Promise<{ client: S3Client; sdk: S3Sdk }> | undefined

  constructor(options: S3Options) {
    this.#options = options
    this.name = `s3://${options.bucket}/${options.prefix ?? ''}`
  }

  async list(signal: AbortSignal): Promise<ListedFile[]> {
    const { client, sdk } = await this.#load()
    const { bucket, prefix = '' } = this.#options
    const files: ListedFile[] = []
    let token: string | undefined
    do {
      const page = await this.#send(() =>
        client.send(new sdk.ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, ContinuationToken: token }), {
          abortSignal: signal,
        }),
      )
      for (const object of page.Contents ?? []) {
        const path = object.Key?.slice(prefix.length)
        if (path !== undefined && isSafePath(path))
          files.push({ path, version: toFileVersion(object.ETag, object.Size, object.LastModified) })
      }
      token = page.NextContinuationToken
    } while (token !== undefined)
    return files
  }

  async open(path: string): Promise<OpenFile | null> {
    const { client, sdk } = await this.#load()
    const target = { Bucket: this.#options.bucket, Key: `${this.#options.prefix ?? ''}${path}` }
    const readHead = async () => await this.#send(() => client.send(new sdk.HeadObjectCommand(target)))
    let head: Awaited<ReturnType<typeof readHead>>
    try {
      head = await readHead()
    } catch (error) {
      if ((error as SyncError).code === 'SOURCE_NOT_FOUND') return null
      throw error
    }
    return {
      size: head.ContentLength ?? 0,
      version: async () => {
        const { ETag, ContentLength, LastModified } = await readHead()
        return toFileVersion(ETag, ContentLength, LastModified)
      },
      read: async (start, end) => {
        if (end <= start) return Buffer.alloc(0)
        const { Body, ETag } = await this.#send(() =>
          client.send(new sdk.GetObjectCommand({ ...target, Range: `bytes=${start}-${end - 1}`, IfMatch: head.ETag })),
        )
        const bytes = Buffer.from(await required(Body, 'the response body').transformToByteArray())
        // Not every server honours the condition.
        if (ETag !== head.ETag)
          throw new SyncError(
            'SOURCE_UNAVAILABLE',
            `${this.name}: ${path} was replaced while it was read. The next cycle reads the new version.`,
          )
        return bytes
      },
      [Symbol.asyncDispose]: async () => {},
    }
  }

  #load(): Promise<{ client: S3Client; sdk: S3Sdk }> {
    return (this.#loaded ??= loadSdk().then((sdk) => ({ sdk, client: new sdk.S3Client(this.#options.client ?? {}) })))
  }

  async #send<T>(send: () => Promise<T>): Promise<T> {
    try {
      return await send()
    } catch (error) {
      const status = (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode
      throw new SyncError(
        ERROR_CODES_BY_STATUS[status ?? 0] ?? 'SOURCE_UNAVAILABLE',
        `${this.name} ${status === undefined ? 'did not answer' : `answered ${status}`} (${(error as Error).name}).`,
        { cause: error },
      )
    }
  }
}

type S3Sdk = typeof import('@aws-sdk/client-s3')

/** Optional dependency, needed only for S3. */
function loadSdk(): Promise<S3Sdk> {
  return importPackage('@aws-sdk/client-s3', 'Reading from S3 needs', () => import('@aws-sdk/client-s3'))
}

const ERROR_CODES_BY_STATUS: Record<number, ErrorCode> = {
  401: 'AUTH_REJECTED',
  403: 'SOURCE_FORBIDDEN',
  404: 'SOURCE_NOT_FOUND',
  429: 'RATE_LIMITED',
  503: 'RATE_LIMITED',
}

/** Keys may be any string; only those that form a path below the prefix are accepted. */
function isSafePath(path: string): boolean {
  return (
    path !== '' &&
    !path.endsWith('/') &&
    !path.startsWith('/') &&
    !path.includes('\0') &&
    !path.split('/').includes('..')
  )
}

/** Rounded to whole seconds, like the header: the listing is more precise. */
function toFileVersion(tag: string | undefined, size: number | undefined, at: Date | undefined): FileVersion {
  const seconds = Math.floor((at?.getTime() ?? 0) / 1_000)
  return { tag: hash('sha256', `${tag} ${size} ${seconds}`, 'base64').slice(0, 8), changedAtMs: (seconds + 1) * 1_000 }
}
