import { inFile, type PlantedBug } from './planted-bug.ts'

const ATTACKS = ['test/connections/connect-attacks.test.ts']
const FLOW = ['test/connections/connect-flow.test.ts']
const PROVIDERS = ['test/connections/providers.test.ts']
const BROWSER = ['test/connections/connect-page.test.ts']

/** The connect flow: providers, OAuth, sessions and pages. */
export const CONNECT_BUGS: readonly PlantedBug[] = [
  ...inFile(
    'src/stores/kit/roles/connections.ts',
    ['test/stores/sqlite.test.ts'],
    [
      ['credentials of a removed connection are stored in a later one', ' and created_at = :createdAt', ''],
      [
        'a removed connection changes the status of a later one',
        ' || found.createdAt !== createdAt) return false',
        ') return false',
      ],
      [
        'a removed connection is written over a later one',
        ' || found?.createdAt !== replaces?.createdAt) return null',
        ') return null',
      ],
    ],
    'removed connection',
  ),
  ...inFile(
    'src/connections/source-connections.ts',
    ['test/connections/renewal.test.ts'],
    [['tokens of a removed connection are used for a later one', 'createdAt === connection.createdAt && ', '']],
  ),
  ...inFile(
    'src/connections/connection-tokens.ts',
    ['test/connections/renewal.test.ts'],
    [
      [
        'a renewal continues with the tokens of a later connection',
        'if (found.connection.createdAt !== this.createdAt) throw createReplacedError(this.#name)',
        '',
      ],
    ],
  ),
  ...inFile('src/connections/check-host.ts', PROVIDERS, [
    [
      'a host that contains a suffix is accepted',
      'host.endsWith(suffix) : host === suffix',
      'host.includes(suffix) : host === suffix',
    ],
    ['a host ends in an exact name', ': host === suffix)', ': host.endsWith(suffix))'],
    ['a private host is accepted', '|| !isPublicHost(host)', ''],
    ['a port is accepted', "|| url.port !== ''", ''],
  ]),
  ...inFile('src/connections/resolve-provider.ts', PROVIDERS, [
    [
      'a secret becomes a setting',
      'Object.hasOwn(inputs, name) && input.isSecret !== true',
      'input.isSecret === undefined || true',
    ],
    ['a control character is accepted', '/[\\u0000-\\u001f\\u007f]/.test(value)', 'value.length === 0'],
    [
      'the member of a prototype is a provider',
      'Object.hasOwn(options, name) ? options[name] : undefined',
      'options[name]',
    ],
  ]),
  ...inFile('src/connections/providers/linear.ts', PROVIDERS, [
    ['the scopes of Linear are separated by spaces', "scopeSeparator: ',',", ''],
  ]),
  ...inFile('src/connections/oauth/authorize-url.ts', PROVIDERS, [
    ['no code challenge is sent', "oauth.pkce !== 'unsupported' && {", "oauth.pkce === 'unsupported' && {"],
  ]),
  ...inFile('src/connections/oauth/pkce.ts', PROVIDERS, [
    ['the verifier is its own challenge', "hash('sha256', verifier, 'base64url')", 'verifier'],
  ]),
  ...inFile('src/connections/oauth/token-requests.ts', FLOW, [
    ['a wrong client is blamed on the user', 'return reason !== null && CLIENT_ERRORS.has(reason)', 'return false'],
  ]),
  ...inFile('src/connections/oauth/revoke-grant.ts', FLOW, [
    ['a refused revocation counts as done', 'return response.ok', 'return true'],
  ]),
  ...inFile('src/connections/identify-account.ts', FLOW, [
    ['ids of two instances are equal', '`${values.checked[host[0]] ?? url.host}/${id}`', 'id'],
  ]),
  ...inFile('src/connections/connect/return-to.ts', ATTACKS, [
    ['another origin is allowed', 'allowed.origin !== url.origin', 'allowed.protocol !== url.protocol'],
    [
      'a path that begins alike is allowed',
      '!url.pathname.startsWith(path)',
      '!url.pathname.startsWith(allowed.pathname)',
    ],
    ['an encoded path leaves the allowed one', 'return !/%2e|%2f|%5c|\\\\/i.test(url.pathname)', 'return true'],
    ['credentials in the URL are allowed', "&& url.username === '' && url.password === ''", ''],
    ['spaces and backslashes are allowed', '|| /[\\u0000-\\u0020\\u007f\\\\]/.test(text)', ''],
  ]),
  ...inFile('src/connections/connect/connect-options.ts', ATTACKS, [
    [
      'the flow runs without TLS',
      "publicUrl.protocol === 'http:' && isLoopbackName(publicUrl.hostname)",
      "publicUrl.protocol === 'http:'",
    ],
  ]),
  ...inFile('src/connections/connect/connect-cookie.ts', ATTACKS, [
    ['a script can read the cookie', "    'HttpOnly',\n", ''],
    ['another host of the domain can set the cookie', "isSecure(publicUrl) ? '__Host-' : ''", "''"],
    ['the cookie is sent without TLS', "...(isSecure(publicUrl) ? ['Secure'] : []),", ''],
  ]),
  ...inFile('src/connections/connect/connect-flow.ts', ATTACKS, [
    [
      'a link works in every browser',
      'if (browserSecret === null || !isDigestOf(browserSecret, session.browser))',
      'if (browserSecret === null)',
    ],
    [
      'a form needs no token',
      "if (!isFormToken(fields['form_token'] ?? '', browserSecret, session.id))",
      'if (session.id === browserSecret)',
    ],
    ['any state is accepted', '|| !isDigestOf(state.secret, attempt.state)', ''],
    ['an answer of another provider is accepted', 'if (providerName !== provider.name)', "if (providerName === '')"],
    [
      'another issuer is accepted',
      'if (iss !== undefined && !isIssuer(iss, provider, attempt))',
      'if (iss === provider.name)',
    ],
    ['a callback is not claimed', "if (claimed === null) return { kind: 'refused', reason: 'state' }", ''],
    [
      'another account replaces the connected one',
      'found.account.id !== account.id && !secrets.allowAccountChange',
      'found.account.id === account.id && secrets.allowAccountChange',
    ],
    ['a disabled connection is enabled', "const isDisabled = found?.status === 'disabled'", 'const isDisabled = false'],
    ['the return URL is not checked', 'checkReturnTo(returnTo, this.#options.returnTo).href', 'returnTo'],
    [
      'the return URL is not checked at the end',
      'const url = checkReturnTo(returnTo, this.#options.returnTo)',
      'const url = new URL(returnTo)',
    ],
    [
      'a used link works again',
      "if (session.status === 'connected') return { kind: 'refused', reason: 'used' }\n    // CSRF",
      '// CSRF',
    ],
    ['a connection changes its provider', 'checkProvider(await store.connection(name), provider)', ''],
  ]),
  ...inFile('src/connections/connect/session-tokens.ts', ATTACKS, [
    ['the token of a form fits every session', '.update(`form ${id}`)', ".update('form')"],
    ['the token of the link is stored', "return hash('sha256', token, 'hex')", 'return token'],
  ]),
  ...inFile('src/connections/connect/token-settings.ts', FLOW, [
    [
      'the URL of an instance may be private',
      "url.protocol === 'https:' && url.port === '' && isPublicHost(url.hostname)",
      "url.protocol === 'https:'",
    ],
  ]),
  ...inFile('src/connections/connect/vendor-context.ts', FLOW, [
    ['requests go to private addresses', 'baseUrl === null ? this.#publicFetch : this.#anyFetch', 'this.#anyFetch'],
  ]),
  ...inFile(
    'src/stores/kit/roles/connect-sessions.ts',
    ['test/stores/sqlite.test.ts'],
    [
      [
        'a session is used twice',
        'and version = :replaces and expires_at > :at',
        'and version >= 0 * :replaces and expires_at > :at',
      ],
      ['an expired session is found', 'and s.expires_at > :at', 'and s.expires_at > 0 * :at'],
      ['expired sessions are kept', 'yield* deleteExpired(sql, createdAt)', ''],
      ['all expired sessions are deleted at once', 'until: last?.until ?? at', 'until: at'],
    ],
  ),
  ...inFile('src/server/connect/routes.ts', ATTACKS, [
    [
      'a form of another site is accepted',
      "if (!isOwnForm(routeRequest, flow.origin)) return { kind: 'refused', reason: 'form-token' }",
      '',
    ],
    [
      'a repeated parameter has its last value',
      "typeof value === 'string' ? [[name, value]] : []",
      '[[name, String([value].flat().at(-1))]]',
    ],
  ]),
  ...inFile('src/server/connect/render-page.ts', FLOW, [
    [
      'text of a vendor becomes markup',
      'text.replaceAll(/[&<>"\']/g, (character) => `&#${character.codePointAt(0) ?? 0};`)',
      'text',
    ],
    [
      'a secret is sent back to the page',
      "const value = isSecret ? '' : (entered[name] ?? input.default ?? '')",
      "const value = entered[name] ?? input.default ?? ''",
    ],
  ]),
  ...inFile('src/server/connect/scripts.ts', BROWSER, [
    ['a message of another page is accepted', 'origin === base.origin && source === popup && ', ''],
  ]),
]
