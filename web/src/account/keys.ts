import { Problem, type KeyAsked } from "../api/problem";
import type { NewKey, NewKeyAsked, Proof, Signed } from "../api/types";

/** Bytes from base 64 for URLs. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

/** Base 64 for URLs, without padding. */
export function textOf(bytes: ArrayBuffer): string {
  const plain = Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join("");
  return btoa(plain).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** What went wrong with a key, in words. */
export class KeyFailure extends Error {}

/** The browser has an own word for each failure, and says nothing else by intent. */
const FAILURES: Record<string, string> = {
  NotAllowedError: "No key was touched in time, or the browser was told to stop. Try again.",
  InvalidStateError: "This key is registered already.",
  SecurityError: "The browser has no key for this address of the page.",
  NotSupportedError: "This key signs in no way that the recorder takes.",
};

function failureOf(error: unknown): KeyFailure {
  const name = error instanceof DOMException ? error.name : "";
  return new KeyFailure(FAILURES[name] ?? "The browser could not use a key.");
}

/** Why keys cannot be used here; null where they can. */
export function keysMissing(origin: string | null, here: string): string | null {
  if (origin === null) {
    return "This service does not know the address of its page: start it with --public-url URL.";
  }
  if (origin !== here) {
    return `Keys work at ${origin}. Open the page there.`;
  }
  return null;
}

/** Has a key sign what the recorder asks. */
export async function askKey(asked: KeyAsked): Promise<Signed> {
  const missing = keysMissing(asked.origin, location.origin);
  if (missing !== null) {
    throw new KeyFailure(missing);
  }
  try {
    const credential = await navigator.credentials.get({
      publicKey: {
        challenge: bytesOf(asked.challenge),
        rpId: asked.rp_id,
        allowCredentials: asked.credentials.map((id) => ({ type: "public-key", id: bytesOf(id) })),
        userVerification: "discouraged",
      },
    });
    const key = credential as PublicKeyCredential;
    const response = key.response as AuthenticatorAssertionResponse;
    return {
      id: textOf(key.rawId),
      client_data: textOf(response.clientDataJSON),
      authenticator_data: textOf(response.authenticatorData),
      signature: textOf(response.signature),
    };
  } catch (error) {
    throw failureOf(error);
  }
}

/** Makes a key. */
export async function makeKey(asked: NewKeyAsked): Promise<NewKey> {
  const { origin, challenge, user, excludeCredentials, ...rest } = asked;
  const missing = keysMissing(origin, location.origin);
  if (missing !== null) {
    throw new KeyFailure(missing);
  }
  try {
    const credential = await navigator.credentials.create({
      publicKey: {
        ...rest,
        challenge: bytesOf(challenge),
        user: { ...user, id: bytesOf(user.id) },
        excludeCredentials: excludeCredentials.map(({ type, id }) => ({ type, id: bytesOf(id) })),
      },
    });
    const response = (credential as PublicKeyCredential).response;
    return {
      client_data: textOf(response.clientDataJSON),
      attestation: textOf((response as AuthenticatorAttestationResponse).attestationObject),
    };
  } catch (error) {
    throw failureOf(error);
  }
}

/** Asks something that needs a proof. Where a key counts and no code was typed, it is touched. */
export async function proving<T>(
  proof: Proof,
  question: (proof: Proof) => Promise<T>,
): Promise<T> {
  try {
    return await question(proof);
  } catch (failure) {
    const key = failure instanceof Problem ? failure.secondFactor?.key : null;
    if (!key) {
      throw failure;
    }
    return question({ ...proof, key: await askKey(key) });
  }
}
