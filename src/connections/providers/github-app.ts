import { defineProvider } from '../define-provider.ts'

export default defineProvider({
  name: 'github-app',
  title: 'GitHub (App)',
  documentation:
    'https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens',
  source: 'github',
  oauth: {
    authorizeUrl: 'https://github.com/login/oauth/authorize',
    tokenUrl: 'https://github.com/login/oauth/access_token',
    // The permissions of a GitHub App replace scopes.
    scopes: [],
    pkce: 'supported',
    clientAuth: 'form',
    refreshTokens: 'rotating',
    expiry: 'stated',
    revocation: {
      method: 'DELETE',
      url: 'https://api.github.com/applications/{client_id}/grant',
      fields: { access_token: '{access_token}' },
      format: 'json',
    },
  },
  account: { url: 'https://api.github.com/user', id: 'id', label: 'login' },
})
