// A farm with NNFARM_API_TOKENS set wants a token in each call. It is kept for the browser tab
// only, so that closing the tab forgets it.
const KEY = "nnfarm.token";

export function currentToken(): string {
  return sessionStorage.getItem(KEY) ?? "";
}

export function keepToken(token: string): void {
  sessionStorage.setItem(KEY, token);
}

/** The header of an authorised call; empty where no token was given. */
export function authorization(): Record<string, string> {
  const token = currentToken();
  return token === "" ? {} : { Authorization: `Bearer ${token}` };
}
