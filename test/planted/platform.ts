import { inFile, type PlantedBug } from './planted-bug.ts'

const FETCH = ['test/platform/fetch.test.ts']
const REDIRECT = ['test/platform/redirect.test.ts']
const ADDRESS = ['test/platform/public-address.test.ts', 'test/webhooks/sender.test.ts']
const TOKENS = ['test/config/manifest-tokens.test.ts']
const SEALED = ['test/registry/sealed-store.test.ts', 'test/registry/seal.test.ts']

export const PLATFORM_BUGS: readonly PlantedBug[] = [
  ...inFile('src/platform/redirect.ts', REDIRECT, [
    [
      'credentials follow a redirect to another origin',
      'new Headers([...headers].filter(([name]) => CROSS_ORIGIN_HEADERS.has(name)))',
      'headers',
    ],
    [
      'a body is sent on to another origin',
      "if (body !== null) throw new SyncError('SOURCE_INVALID'",
      "if (body !== null && method === 'GET') throw new SyncError('SOURCE_INVALID'",
    ],
    [
      'a redirect leads into the private network',
      'if (!isPublicHost(url.hostname)) throw',
      "if (url.hostname === '' && !isPublicHost(url.hostname)) throw",
    ],
    [
      'a second redirect is trusted again',
      'return { url, method, headers, body, isCrossOrigin: hop.isCrossOrigin }',
      'return { url, method, headers, body, isCrossOrigin: false }',
    ],
    ['a 307 drops the body', 'response.status < 303 && hop.method', 'response.status < 308 && hop.method'],
    [
      'a 303 keeps the method',
      "response.status === 303 ? hop.method !== 'HEAD'",
      "response.status === 303 ? hop.method === 'HEAD'",
    ],
    ['credentials in a redirect are kept', "url.username = ''\n  url.password = ''\n", ''],
    [
      'another scheme is followed',
      "url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')",
      'url === null',
    ],
  ]),
  ...inFile('src/platform/public-address.ts', ADDRESS, [
    ['link-local addresses are public', "'169.254.0.0/16', ", ''],
    ['shared address space is public', "'100.64.0.0/10', ", ''],
    ['unique local addresses are public', "'fc00::/7', ", ''],
    ['an embedded IPv4 address is public', "'64:ff9b::/96', ", ''],
    ['a name with a final dot is not recognised', ".replace(/\\.$/, '')", ''],
    [
      'a name without a dot is public',
      "host.includes('.') && !PRIVATE_NAME_PATTERN.test(host)",
      '!PRIVATE_NAME_PATTERN.test(host)',
    ],
    ['names of the machine are public', 'localhost|local|internal|', 'localhost|local|'],
    ['an address with a zone is public', " && !address.includes('%')", ''],
  ]),
  ...inFile(
    'src/platform/checked-lookup.ts',
    [...FETCH, 'test/webhooks/sender.test.ts'],
    [['one public address is enough', 'addresses.every(', 'addresses.some(']],
  ),
  ...inFile('src/http/follow-redirects.ts', FETCH, [
    ['one redirect too many is followed', 'redirects === policy.max', 'redirects > policy.max'],
  ]),
  ...inFile('src/platform/fetch.ts', FETCH, [
    [
      'a redirect is answered by the unchecked connection',
      'isCrossOrigin || limits.publicOnly ? foreign : own',
      'limits.publicOnly ? foreign : own',
    ],
    [
      'a name of a private address is connected to',
      'isCrossOrigin || limits.publicOnly ? foreign : own',
      'isCrossOrigin ? foreign : own',
    ],
    [
      'a private address is connected to',
      'if (limits.publicOnly && !isPublicHost(url.hostname)) throw createNotPublicError()',
      '',
    ],
    [
      'credentials in a URL are sent',
      "url.username !== '' || url.password !== ''",
      "url.username !== '' && url.password === ''",
    ],
  ]),
  ...inFile('src/http/decode-body.ts', FETCH, [
    ['several encodings are unfolded', 'encodings.length > 1', 'encodings.length > 2'],
    [
      'an unpacked body is not bounded',
      'return limitBytes(source, limits.bodyBytesMax, refuse, failure)',
      'return limitBytes(source, Number.POSITIVE_INFINITY, refuse, failure)',
    ],
  ]),
  ...inFile('src/sources/kit/config-auth.ts', TOKENS, [
    [
      'rotated tokens are kept in memory only',
      'refreshToken({ ...options, refreshToken: seed, tokens })',
      'refreshToken({ ...options, refreshToken: seed })',
    ],
  ]),
  ...inFile('src/config/manifest/connectors.ts', TOKENS, [
    ['token files are kept where the process was started', 'join(folder, TOKENS_FOLDER)', 'TOKENS_FOLDER'],
  ]),
  ...inFile('src/sources/servicenow/descriptor.ts', TOKENS, [
    [
      'ServiceNow ignores its token files',
      'createOAuth(oauth, tokens)',
      'createOAuth(oauth, () => undefined as never)',
    ],
  ]),
  ...inFile('src/sources/salesforce/descriptor.ts', TOKENS, [
    [
      'Salesforce ignores its token files',
      'createOAuth(oauth, tokens)',
      'createOAuth(oauth, () => undefined as never)',
    ],
  ]),
  ...inFile(
    'src/values/config-schema.ts',
    ['test/config/manifest.test.ts', 'test/config/manifest-connectors.test.ts'],
    [
      ['a manifest may contain a secret', "pattern: '^\\\\$\\\\{[A-Za-z_][A-Za-z0-9_]*\\\\}$',", ''],
      ['an unknown field of a config is ignored', 'properties, additionalProperties: false, ', 'properties, '],
    ],
  ),
  ...inFile(
    'src/sources/registry.ts',
    ['test/sources/registry.test.ts'],
    [
      ['a source is not registered', '  kraken,\n', ''],
      ['a source is registered under another name', '  linear,\n', '  linear: kraken,\n'],
    ],
  ),
  ...inFile(
    'src/sources/kit/select-stream.ts',
    ['test/config/manifest.test.ts', 'test/config/manifest-connectors.test.ts'],
    [
      [
        'an inherited name is taken for a stream',
        'Object.hasOwn(streams, name) ? streams[name] : undefined',
        'name in streams ? streams[name] : undefined',
      ],
      [
        'a full refresh follows the changes',
        "mode === 'full_refresh' && 'backfill' in opened",
        "mode === 'full_refresh' && 'nothing' in opened",
      ],
    ],
  ),
  ...inFile(
    'src/connector/file-token-store.ts',
    ['test/connector/file-token-store.test.ts'],
    [
      [
        'a write without the newest version succeeds',
        'if ((versions.at(-1) ?? 0) !== expectedVersion) return false\n',
        '',
      ],
      ['a file copied over another is accepted', 'return `${this.#account}.${version}`\n', "return 'tokens'\n"],
      ['token files can be read by everyone', "open(file, 'wx', 0o600)", "open(file, 'wx', 0o644)"],
      [
        'the version before the newest is removed',
        'await this.#deleteVersionsBelow(version - 1)',
        'await this.#deleteVersionsBelow(version + 1)',
      ],
    ],
  ),
  ...inFile('src/registry/sealed-store.ts', SEALED, [
    [
      'a state of another version is opened',
      `if (!purposes.includes(parts.purpose)) throw fail('belongs to another version or page: it was rolled back or moved')
`,
      '',
    ],
    [
      'cursor secrets are stored in plain text',
      "store.isReplica === true ? '' : await sealer.seal(TENANT_REF, candidate.secret, CURSOR_SECRET_PURPOSE, candidate.createdAt)",
      'candidate.secret',
    ],
    [
      'the guard of a cycle is stored in plain text',
      'guardState: this.#sealWith(key, ref, transition.guardState, GUARD_PURPOSE)',
      'guardState: transition.guardState',
    ],
    [
      'a write with a replaced data key fails',
      "if (!isSyncError(error) || error.code !== 'DATA_KEY_REPLACED' || attempt === KEY_ATTEMPTS_MAX) throw error",
      'throw error',
      ['test/registry/data-keys.test.ts'],
    ],
  ]),
  ...inFile(
    'src/registry/data-keys.ts',
    ['test/registry/data-keys.test.ts', 'test/registry/sealed-store.test.ts'],
    [
      [
        'a foreign key ring makes a new data key',
        `await this.#assertKeyRingMatches()
`,
        '',
      ],
      [
        'a replaced key is not removed',
        'if (await this.#store.removeDataKey(id, { actor, at })) removed.push(id)',
        'removed.push(id)',
      ],
      [
        'a data key of another tenant opens',
        "JSON.stringify(['tidemark data key', 1, tenant, id])",
        "JSON.stringify(['tidemark data key', 1, id])",
      ],
    ],
  ),
  ...inFile('src/registry/seal.ts', SEALED, [
    [
      'a sealed text is not bound to its context',
      'decipher.setAAD(Buffer.from(aad))',
      "decipher.setAAD(Buffer.from(''))",
    ],
    ['a shortened tag is accepted', "bytes.toString('base64url') !== sealed", 'false'],
  ]),
  ...inFile(
    'src/registry/audit-chain.ts',
    ['test/registry/chain.test.ts'],
    [
      [
        'the actor of an entry is not part of the chain',
        'at, actor, action, reason, cycle, state])',
        'at, action, reason, cycle, state])',
      ],
      [
        'an entry does not cover the one before it',
        "hash('sha256', previous + text, 'hex')",
        "hash('sha256', text, 'hex')",
      ],
    ],
  ),
  ...inFile(
    'src/redaction/known-secrets.ts',
    ['test/redaction/known-secrets.test.ts'],
    [
      ['a secret in base64 is shown', ', ...listBase64Forms(value)]', ']'],
      ['the mask is masked again', ' && !MASK.includes(part)', ''],
      ['a secret in a form is shown', 'form, json, JSON.stringify', 'json, JSON.stringify'],
      ['the password of a URL is shown', '[...(password === undefined ? [] : [password]), ...queries', '[...queries'],
    ],
  ),
  ...inFile(
    'src/redaction/mask-url.ts',
    ['test/redaction/mask-url.test.ts'],
    [
      ['a password with an @ is shown in part', '(?:.*)@/is', '(?:.*?)@/is'],
      ['a token in a query is shown', 'pass|pwd|secret|token|key', 'pass|pwd|secret'],
    ],
  ),
  ...inFile(
    'src/redaction/redact-state.ts',
    ['test/redaction/redact-state.test.ts'],
    [['a cursor is shown as a tidemark', 'reveal || canonicalizeInstant(tidemark) !== null', 'true']],
  ),
  ...inFile(
    'src/values/retry-after.ts',
    ['test/values/retry-after.test.ts'],
    [
      [
        'the shortest of several waits counts',
        'Math.max(0, ...waits.map(Math.ceil))',
        'Math.min(...waits.map(Math.ceil))',
      ],
      [
        'a reset counts while a budget is left',
        '(parseNumber(readHeader(headers, remaining)) ?? 0) > 0 ? [] :',
        'false ? [] :',
      ],
      [
        'the wait is counted by the faster clock',
        'Math.max(ours, theirs, ELAPSED_PAUSE_MS)',
        'Math.max(Math.min(ours, theirs), ELAPSED_PAUSE_MS)',
      ],
      [
        'a 403 without a limit pauses the account',
        "(headers.has('retry-after') || isBudgetExhausted(headers))",
        'true',
      ],
      [
        'a pause of 503 is ignored',
        'status >= 500 ? retryAfterMs(headers, nowMs)',
        'status > 599 ? retryAfterMs(headers, nowMs)',
      ],
    ],
  ),
  ...inFile(
    'src/values/instant.ts',
    ['test/values/instant.test.ts'],
    [
      [
        'microseconds are rounded to milliseconds',
        ".slice(20, -1).slice(0, 6).padEnd(6, '0')",
        ".slice(20, -1).slice(0, 3).padEnd(6, '0')",
      ],
      ['the offset has the wrong sign', "(sign === '-' ? -1 : 1)", "(sign === '-' ? 1 : -1)"],
      ['the tolerance excludes its bound', '<= toleranceMs) return 0', '< toleranceMs) return 0'],
    ],
  ),
]
