import { defineProvider } from '../define-provider.ts'

export default defineProvider({
  name: 'linear',
  title: 'Linear',
  documentation: 'https://linear.app/developers/oauth-2-0-authentication',
  source: 'linear',
  oauth: {
    authorizeUrl: 'https://linear.app/oauth/authorize',
    tokenUrl: 'https://api.linear.app/oauth/token',
    scopes: ['read'],
    scopeSeparator: ',',
    pkce: 'supported',
    clientAuth: 'form',
    // Otherwise a user with an earlier grant cannot choose another workspace.
    authorizeFields: { prompt: 'consent' },
    refreshTokens: 'rotating',
    expiry: 'stated',
    revocation: { method: 'POST', url: 'https://api.linear.app/oauth/revoke', auth: 'bearer' },
  },
  form: {
    steps: [
      'In Linear, open Settings, then Account, then Security & access.',
      'Create a personal API key with the permission Read.',
      'Copy the key. It begins with lin_api_.',
    ],
    fields: { api_key: { label: 'Personal API key', example: 'lin_api_…', isSecret: true } },
    // A personal key is sent without a prefix.
    auth: { kind: 'header', header: 'authorization', field: 'api_key' },
  },
  account: {
    method: 'POST',
    url: 'https://api.linear.app/graphql',
    body: '{"query":"{ viewer { id organization { id name } } }"}',
    id: 'data.viewer.organization.id',
    label: 'data.viewer.organization.name',
  },
})
