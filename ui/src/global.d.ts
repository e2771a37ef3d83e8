// Styles are a separate file in the bundle.
declare module "*.css";
