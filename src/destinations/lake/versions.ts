import type { Storage } from './storage/storage.ts'

/** Numbered files, of which the highest is current. A hint saves listing them. */
export class Versions {
  readonly #storage: Storage
  readonly #hint: string
  readonly #folder: string
  readonly #suffix: string
  readonly #publish: (version: number, bytes: Uint8Array) => Promise<void>

  /** Files are `<folder>/v<number><suffix>`. `publish` is called for a version before the hint names it. */
  constructor(
    storage: Storage,
    folder: string,
    suffix: string,
    publish: (version: number, bytes: Uint8Array) => Promise<void> = async () => {},
  ) {
    this.#storage = storage
    this.#publish = publish
    this.#folder = folder
    this.#suffix = suffix
    this.#hint = `${folder}/version-hint.text`
  }

  pathOf(version: number): string {
    return `${this.#folder}/v${version}${this.#suffix}`
  }

  /** The newest version; null if there is none. */
  async readNewest(): Promise<{ version: number; bytes: Buffer } | null> {
    const hint = Number((await this.#storage.read(this.#hint))?.toString() ?? NaN)
    let version = Number.isSafeInteger(hint) && hint > 0 ? hint : await this.#findHighest()
    let bytes = version === 0 ? null : await this.#storage.read(this.pathOf(version))
    if (bytes === null && version > 0) {
      // The hint names a version that was removed: a process was interrupted before it wrote a newer one.
      version = await this.#findHighest()
      bytes = version === 0 ? null : await this.#storage.read(this.pathOf(version))
    }
    if (bytes === null) return null
    // The hint is written after the version, so a newer one may exist.
    for (;;) {
      const next = await this.#storage.read(this.pathOf(version + 1))
      if (next === null) break
      ;[version, bytes] = [version + 1, next]
    }
    // Readers that only know the hint would otherwise stay behind.
    if (version !== hint) await this.#writeHint(version, bytes)
    return { version, bytes }
  }

  /**
   * Creates a version if it does not exist; false if another process did. A process that was suspended for days may
   * find its number free again, because old versions are removed: such a version is withdrawn.
   */
  async create(version: number, bytes: Uint8Array): Promise<boolean> {
    const path = this.pathOf(version)
    if (!(await this.#storage.create(path, bytes))) {
      // The answer to an earlier attempt may have been lost.
      if ((await this.#storage.read(path))?.equals(bytes) !== true) return false
    }
    const hint = Number((await this.#storage.read(this.#hint))?.toString() ?? NaN)
    if (hint > version) {
      // Versions are removed in order: if this number was free again, the one before it is gone as well.
      if (version === 1 || (await this.#storage.read(this.pathOf(version - 1))) !== null) return true
      await this.#storage.remove([path])
      return false
    }
    await this.#writeHint(version, bytes)
    return true
  }

  /** The versions that exist. */
  async list(): Promise<Array<{ version: number; path: string; changedAtMs: number }>> {
    const files = await this.#storage.list(this.#folder)
    return files.flatMap(({ path, changedAtMs }) => {
      const name = path.slice(this.#folder.length + 1)
      const version = name.endsWith(this.#suffix)
        ? /^v(\d+)$/.exec(name.slice(0, -this.#suffix.length))?.[1]
        : undefined
      return version === undefined ? [] : [{ version: Number(version), path, changedAtMs }]
    })
  }

  get hintPath(): string {
    return this.#hint
  }

  async #writeHint(version: number, bytes: Uint8Array): Promise<void> {
    await this.#publish(version, bytes)
    await this.#storage.write(this.#hint, Buffer.from(String(version)))
  }

  async #findHighest(): Promise<number> {
    return Math.max(0, ...(await this.list()).map(({ version }) => version))
  }
}
