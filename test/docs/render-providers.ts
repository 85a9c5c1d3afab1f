import type { Provider, ProviderInput } from '../../src/connections/define-provider.ts'
import { PROVIDERS } from '../../src/connections/registry.ts'

const ALL = Object.values<Provider>(PROVIDERS)

const REFRESH = {
  rotating: 'a new one with every renewal',
  optional: 'depends on the settings of the app at the vendor',
  fixed: 'stays the same',
  none: 'none',
} as const
const EXPIRY = {
  stated: 'stated in the answer',
  unstated: 'not stated; renewed when the vendor rejects it',
  never: 'does not expire',
} as const

/** Renders docs/reference/providers.md from the descriptors in src/connections/providers/. */
export function renderProviders(): string {
  return [
    '# The providers of the connect flow',
    '',
    'Every vendor that an account can be connected at. The table and the sections come from the descriptors in',
    '`src/connections/providers/`. See [the guide](../guides/connect-flow.md) for the flow itself.',
    '',
    '| provider | vendor | source | OAuth | form |',
    '|---|---|---|---|---|',
    ...ALL.map(({ name, title, source, oauth, form }) =>
      row(
        `[\`${name}\`](#${name})`,
        title,
        source === null ? 'any' : `\`tidemark/sources/${source}\``,
        oauth === undefined ? '–' : 'yes',
        form === undefined
          ? '–'
          : Object.values(form.fields)
              .map(({ label }) => label)
              .join(', '),
      ),
    ),
    ...ALL.flatMap(sectionOf),
    '',
  ].join('\n')
}

function sectionOf({ name, title, documentation, inputs = {}, oauth, form, account }: Provider): string[] {
  return [
    '',
    `## ${name}`,
    '',
    `${title}. [Documentation of the vendor](${documentation}).`,
    ...(Object.keys(inputs).length === 0
      ? []
      : ['', 'The page asks for:', '', ...Object.entries(inputs).map(inputLine)]),
    ...(oauth === undefined
      ? []
      : [
          '',
          '| OAuth | |',
          '|---|---|',
          row('authorize', `\`${oauth.authorizeUrl}\``),
          row('token', `\`${oauth.tokenUrl}\``),
          row(
            'revoke',
            oauth.revocation === undefined ? 'no endpoint' : `\`${oauth.revocation.method} ${oauth.revocation.url}\``,
          ),
          row(
            'default scopes',
            oauth.scopes.length === 0 ? 'none' : oauth.scopes.map((scope) => `\`${scope}\``).join(' '),
          ),
          row('scope separator', oauth.scopeSeparator === ',' ? 'comma' : 'space'),
          row('PKCE (S256)', oauth.pkce),
          row(
            'client authentication',
            `${oauth.clientAuth === 'basic' ? 'basic header' : 'members of the body'}, ${oauth.tokenFormat ?? 'form'}`,
          ),
          row('refresh token', REFRESH[oauth.refreshTokens]),
          row('expiry of the access token', EXPIRY[oauth.expiry]),
          ...Object.entries(oauth.authorizeFields ?? {}).map(([field, value]) =>
            row('further field', `\`${field}=${value}\``),
          ),
          ...Object.entries(oauth.settingsFromTokens ?? {}).map(([setting, path]) =>
            row('setting from the token answer', `\`${setting}\`, from \`${path}\``),
          ),
          ...(oauth.isClientPerInstance === true
            ? [row('client', 'registered by the user in the own instance, and entered on the page')]
            : []),
        ]),
    ...(form === undefined
      ? []
      : [
          '',
          'The form:',
          '',
          ...form.steps.map((step, at) => `${at + 1}. ${step}`),
          '',
          ...Object.entries(form.fields).map(inputLine),
        ]),
    '',
    `The account is \`${account.id}\`, shown as \`${account.label}\`, of \`${account.method ?? 'GET'} ${account.url}\`.`,
  ]
}

function inputLine([name, input]: [string, ProviderInput]): string {
  const { label, hint, example, hostSuffixes = [], isSecret = false } = input
  return [
    `- \`${name}\`: ${label}${isSecret ? ' (secret)' : ''}.`,
    ...(hint === undefined ? [] : [hint]),
    ...(example === undefined ? [] : [`Example: \`${example}\`.`]),
    ...(hostSuffixes.length === 0 ? [] : [`Allowed: ${hostSuffixes.map((suffix) => `\`${suffix}\``).join(', ')}.`]),
    ...(input.default === undefined ? [] : [`Default: \`${input.default}\`.`]),
  ].join(' ')
}

function row(...cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}
