// Styles are a file of their own in the bundle.
declare module "*.css";
