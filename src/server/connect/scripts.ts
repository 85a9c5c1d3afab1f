/**
 * Opens a connect link in a pop-up: `tidemarkConnect(url)` resolves with the result. It accepts a message from the
 * pop-up alone, and from the origin of this script alone. Some vendors sever a pop-up from its opener; it then looks
 * closed, and the result is read from the server.
 */
export const CONNECT_SCRIPT = `(() => {
  const base = new URL('.', document.currentScript.src)
  window.tidemarkConnect = (link) =>
    new Promise((resolve, reject) => {
      const url = new URL(link, location.href)
      if (url.origin !== base.origin || !url.pathname.startsWith(base.pathname))
        return reject(new Error('The link is not below ' + base.href))
      const results = base.href + 'result/' + url.pathname.split('/').pop()
      url.searchParams.set('popup', '1')
      const popup = window.open(url.href, '_blank', 'popup,width=520,height=720')
      if (!popup) return reject(new Error('The pop-up was blocked. Open it in the handler of a click.'))
      const end = ({ status, connection, provider }) => {
        clearInterval(timer)
        removeEventListener('message', receive)
        resolve({ status, connection, provider })
      }
      const receive = ({ origin, source, data }) => {
        if (origin === base.origin && source === popup && data?.type === 'tidemark-connect') end(data)
      }
      const look = async () => {
        if (!popup.closed) return
        const response = await fetch(results).catch(() => null)
        const data = response?.ok ? (await response.json()).data : {}
        if (data.status === 'connected') end(data)
        else if (data.status !== 'authorizing' && data.status !== 'finishing') end({ status: 'closed' })
      }
      const timer = setInterval(look, 1000)
      addEventListener('message', receive)
    })
})()
`

/** Reports the result to the page that opened the pop-up, which has the origin that the program allows. */
export const DONE_SCRIPT = `(() => {
  const { origin, status, connection, provider } = document.body.dataset
  if (!window.opener) return
  window.opener.postMessage({ type: 'tidemark-connect', status, connection, provider }, origin)
  window.close()
})()
`
