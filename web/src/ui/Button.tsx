import type { ButtonHTMLAttributes } from "react";
import { Link, type LinkProps } from "react-router";

import styles from "./ui.module.css";

interface Look {
  primary?: boolean;
  small?: boolean;
}

function className({ primary = false, small = false }: Look): string {
  const names = [styles.button, primary && styles.primary, small && styles.smallButton];
  return names.filter(Boolean).join(" ");
}

export function Button({
  primary,
  small,
  ...rest
}: Look & ButtonHTMLAttributes<HTMLButtonElement>) {
  const look = { primary: primary ?? false, small: small ?? false };
  return <button type="button" {...rest} className={className(look)} />;
}

export function LinkButton({ primary, small, ...rest }: Look & LinkProps) {
  const look = { primary: primary ?? false, small: small ?? false };
  return <Link {...rest} className={className(look)} />;
}

export const smallButtonClass = className({ small: true });
