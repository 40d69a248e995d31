import '../generated/formulas.css';
import temml from 'temml';

/** Writes a formula into an element, as MathML, which browsers set. */
export function renderFormula(text: string, display: boolean, into: HTMLElement): void {
  temml.render(text, into, { displayMode: display, throwOnError: false, trust: false, maxExpand: 300, maxSize: [20, 20] });
  // \label and \ref name places of the page, where the address says what is shown.
  for (const element of into.querySelectorAll('[id], [href]')) {
    element.removeAttribute('id');
    element.removeAttribute('href');
  }
}
