import { defineProvider } from '../define-provider.ts'

export default defineProvider({
  name: 'github',
  title: 'GitHub',
  documentation: 'https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps',
  source: 'github',
  oauth: {
    authorizeUrl: 'https://github.com/login/oauth/authorize',
    tokenUrl: 'https://github.com/login/oauth/access_token',
    scopes: ['repo', 'read:org'],
    pkce: 'supported',
    clientAuth: 'form',
    refreshTokens: 'none',
    expiry: 'never',
    revocation: {
      method: 'DELETE',
      url: 'https://api.github.com/applications/{client_id}/grant',
      fields: { access_token: '{access_token}' },
      format: 'json',
    },
  },
  form: {
    steps: [
      'On GitHub, open Settings, then Developer settings, then Personal access tokens, then Fine-grained tokens.',
      'Generate a token for the repositories that you want to sync, with read access to Contents, Issues, Metadata and Pull requests.',
      'Copy the token. It begins with github_pat_.',
    ],
    fields: { token: { label: 'Personal access token', example: 'github_pat_…', isSecret: true } },
    auth: { kind: 'header', header: 'authorization', field: 'token', prefix: 'Bearer ' },
  },
  account: { url: 'https://api.github.com/user', id: 'id', label: 'login' },
})
