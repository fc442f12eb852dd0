import { NavLink, Link, Outlet } from "react-router";

import { LinkButton } from "./Button";
import styles from "./Layout.module.css";

/** The frame of every page: brand, navigation, content. */
export function Layout() {
  return (
    <>
      <a className={styles.skip} href="#content">
        Skip to the content
      </a>
      <header className={styles.bar}>
        <div className={styles.inner}>
          <Link className={styles.brand} to="/" aria-label="nnfarm">
            <img src="/icon.svg" alt="" width="20" height="20" />
            <span className={styles.brandName}>nnfarm</span>
          </Link>
          <nav className={styles.nav} aria-label="Pages">
            <NavLink to="/" end>
              Compilations
            </NavLink>
            <NavLink to="/models">Models</NavLink>
            <NavLink to="/devices">Devices</NavLink>
          </nav>
          <LinkButton primary to="/upload">
            New<span className={styles.brandName}>compilation</span>
          </LinkButton>
        </div>
      </header>
      <main id="content" className={styles.main} tabIndex={-1}>
        <Outlet />
      </main>
      <footer className={styles.foot}>
        <a href="/openapi.json">OpenAPI document</a>
      </footer>
    </>
  );
}
